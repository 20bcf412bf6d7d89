// SPDX-License-Identifier: MIT
// opener_serve: what the opener's process does. For opener.c only.
#pragma once

// Answers requests from the socket until the other end is closed.
void opener_serve(int fd);

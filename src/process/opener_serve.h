// SPDX-License-Identifier: MIT
// opener_serve: the work of the opener's process. For opener.c only.
#pragma once

// Answers requests from the socket until the other end is closed.
void opener_serve(int fd);

// SPDX-License-Identifier: MIT
// show: the last words of a run. Each returns the exit status.
#pragma once

struct error;

// Tells what went wrong, and destroys the error.
int show_error(struct error *error);

// Text for stdout.
int show_text(const char *text);

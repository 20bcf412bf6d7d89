// SPDX-License-Identifier: MIT
// show: prints the last words of a run. Each function returns the exit status.
#pragma once

struct error;

// Prints the error to stderr, and destroys it.
int show_error(struct error *error);

// Prints the text to stdout.
int show_text(const char *text);

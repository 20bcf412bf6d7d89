// SPDX-License-Identifier: MIT
// show: prints what a person is to see last.
#pragma once

struct error;

// Prints the error to stderr, and destroys it. Returns the exit status.
int show_error(struct error *error);

// Returns the error of a stdout that could not be written: errno tells why.
struct error *show_no_reader(void);

// Print the text to stdout, as it is or as a line.
struct error *show_text(const char *text);
struct error *show_line(const char *text);

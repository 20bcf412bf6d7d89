// SPDX-License-Identifier: MIT
// push_headers: credentials, as lines of a file that only its user may read.
#pragma once

struct error;

struct push_headers {
	char **lines; // "Name: value", NULL-terminated; NULL: none; owned
};

// Reads the file (--push-header-file). Messages never show what is in it.
struct error *push_headers_read(const char *path, struct push_headers *ret);

// Overwrites their values where a text has them, or begins to at its end: what a server says is
// shown.
void push_headers_hide(const struct push_headers *headers, char *text);

// Forgets them, and overwrites where they stood.
void push_headers_deinit(struct push_headers *headers);

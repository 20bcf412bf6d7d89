// SPDX-License-Identifier: MIT
// push_headers: credentials, as lines of a file that only its user may read.
#pragma once

struct error;

struct push_headers {
	char **lines; // "Name: value", NULL-terminated; NULL: none; owned
};

// Reads the file (--push-header-file). Messages never show what is in it.
struct error *push_headers_read(const char *path, struct push_headers *ret);

// Forgets them, and overwrites where they stood.
void push_headers_deinit(struct push_headers *headers);

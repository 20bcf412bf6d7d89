// SPDX-License-Identifier: MIT
// push_headers: reads credentials from a file that only its user may read.
#pragma once

struct error;

struct push_headers {
	char **lines; // "Name: value", NULL-terminated; NULL: none; owned
};

// Reads the file (--push-header-file). Messages never show its contents.
struct error *push_headers_read(const char *path, struct push_headers *ret);

// Overwrites the headers' values in a text that a server has sent and that is to be shown, also
// where one is cut off at the text's end.
void push_headers_hide(const struct push_headers *headers, char *text);

// Overwrites and frees the headers.
void push_headers_deinit(struct push_headers *headers);

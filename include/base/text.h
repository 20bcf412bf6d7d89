// SPDX-License-Identifier: MIT
// text: text of unknown origin (symbol names, thread names, paths) made fit to be shown.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TEXT_UNLIMITED SIZE_MAX

// A new string, owned by the caller: the `length` bytes at `bytes` (NUL among them or not) as valid
// UTF-8 on one line. Control characters (C0, DEL, C1, the line and paragraph separators,
// embeddings, overrides and isolates of another writing direction) become '_'. Bytes that are not
// UTF-8, and the noncharacters that XML forbids, become U+FFFD. A result of more than `max_length`
// bytes is cut between two characters and ends in "...", which counts.
char *text_clean(const char *bytes, size_t length, size_t max_length)
    __attribute__((returns_nonnull));

// A new string, owned by the caller: the text, or if it is longer than `max_length` bytes, its
// beginning with a mark. Texts that differ stay different.
char *text_cut(const char *text, size_t max_length) __attribute__((returns_nonnull));

// The part of a path behind the last slash; of one that ends with a slash, the whole.
const char *text_base_name(const char *path);

// True if text_clean's result is the same string: a caller that keeps the string needs no copy.
bool text_is_clean(const char *bytes, size_t length);

static inline bool text_begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

bool text_ends_with(const char *text, const char *end);

// True if the text begins with one of a list that ends with NULL, or contains one of them.
bool text_begins_with_any(const char *text, const char *const *starts);
bool text_contains_any(const char *text, const char *const *parts);

// What the word for n things ends with: "s", but for one of them.
static inline const char *text_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

// A new string, owned by the caller: the file's name as one word for a shell, which is not taken
// for an option (POSIX, Shell Command Language, 2.2). What needs no quotes gets none.
char *text_quote_file(const char *name) __attribute__((returns_nonnull));

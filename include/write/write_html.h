// SPDX-License-Identifier: MIT
// write_html: writes a page of one profile, or of two, or of folded stacks (writer.h has the first
// as a format).
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct error;
struct report;

// Writes both with timelines. `base`: the profile to compare with; NULL: there is none.
struct error *write_html_diff(const struct report *base, const struct report *report, FILE *stream);

// Gives more of a text: whole lines, which are valid until the next call; only the last one of all
// may lack its newline. Size 0: there is no more.
typedef struct error *lines_fn(void *context, const char **ret, size_t *ret_size);

// Writes a page of folded stacks, which any profiler may have written. `name` is the file's, for
// messages; it and `title` are clean text.
struct error *write_html_folded(const char *name, const char *title, lines_fn *lines, void *context,
                                FILE *stream);

// Writes a page of a pprof profile, compressed or not, which any profiler may have written.
struct error *write_html_pprof(const char *name, const char *title, const uint8_t *bytes,
                               size_t size, FILE *stream);

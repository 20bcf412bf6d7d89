// SPDX-License-Identifier: MIT
// advice: tells which functions have no names, and how to get them.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct modules;
struct profile;
struct symbols;

enum { ADVICE_MAX_LINES = 3 };

struct advice {
	char *lines[ADVICE_MAX_LINES]; // owned
	size_t n_lines;
};

// Judges the threads that run, or wait for something particular; all threads, if there are none
// such. Advises on each language (hidden_language.h) that hides its functions in a tenth of their
// samples, or of those that are running or ready to run; and on the file that lacks most names if
// half of the others have no name for their leaf or for most of their frames. `asked_servers`:
// --debuginfod was given.
void advice_on_names(const struct profile *profile, const struct modules *modules,
                     const struct symbols *symbols, bool asked_servers, struct advice *ret);
void advice_deinit(struct advice *advice);

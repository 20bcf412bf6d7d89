// SPDX-License-Identifier: MIT
// selection: finds the samples of a finished profile that the user asked for.
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct modules;
struct profile;
struct symbols;

// What a regular expression (regcomp(3)) is matched against.
enum selection_regex {
	SELECTION_THREAD,  // the thread's name
	SELECTION_SYSCALL, // the name of the system call that it waits in
	SELECTION_FOCUS,   // the frames' names: one of them must match,
	SELECTION_IGNORE,  // or none may
	N_SELECTION_REGEXES,
};

// Samples have to have a label with that key (labels.h), whose value matches.
struct label_filter {
	char *key;
	regex_t regex;
};

struct selection {
	unsigned int states; // bit s: samples in enum thread_state s; 0: all
	const regex_t *regexes[N_SELECTION_REGEXES]; // NULL: all; borrowed
	const struct label_filter *label_filters;    // all have to match; borrowed
	size_t n_label_filters;
};

// True if the profile's set of labels matches all of the filters.
bool selection_has_labels(const struct label_filter *filters, size_t n,
                          const struct profile *profile, uint32_t labels);

// Returns for each sample of the profile whether it is selected; owned by the caller. The frames'
// names are those that the writers write, `syscalls` as for frame_name_wait; threads and processes
// as root frames are not looked at.
bool *selection_apply(const struct selection *selection, const struct profile *profile,
                      const struct modules *modules, const struct symbols *symbols, bool syscalls)
    __attribute__((returns_nonnull));

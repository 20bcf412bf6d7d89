// SPDX-License-Identifier: MIT
// targets: the processes that a run was asked to sample.
#pragma once

#include <stddef.h>

struct error;
struct options;
struct target;

struct targets {
	struct target *items; // owned
	size_t n;
};

// Opens the processes that the options name, each once. If some of several cannot be sampled,
// leaves them out and says so on stderr, a line for each; likewise if another process traces one.
// An error if none can be sampled; there is nothing to close then.
struct error *targets_open(const struct options *options, struct targets *ret);

// Opens a command that the profiler has started, likewise.
struct error *targets_open_own(int pid, struct targets *ret);

void targets_close(struct targets *targets);

// SPDX-License-Identifier: MIT
// agent_options: the command line of `profiler agent`.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent_rules.h"

struct error;
struct name_cache;
struct option_table;
struct options;

struct agent_options {
	bool list;
	struct agent_rules rules;
	int64_t window_ns, period_ns; // each process is sampled for the one in each of the other
	int64_t min_age_ns;
	size_t max_processes;   // sampled at a time
	double max_cpu_percent; // of a CPU, of all together; 0: no limit
	uint64_t max_memory;    // bytes, of all together
	const char *off_file;   // while it is there, nobody is sampled
	// In a sampler's process:
	const char *const *comments; // of its window, NULL-terminated; borrowed
	uint32_t window_number;      // in its file's name, which no other window has
	struct name_cache *names;    // that others have found; borrowed
};

// The options that it alone has.
extern const struct option_table agent_rows;

// For struct verb: takes a rule, and looks whether all is there.
struct error *agent_take_word(struct options *options, const char *word);
struct error *agent_check(struct options *options);

void agent_options_deinit(struct agent_options *agent);

// SPDX-License-Identifier: MIT
// agent_command: `profiler agent`.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent_rules.h"

struct name_cache;
struct option_table;

struct error;
struct options;
struct run_told;

// Runs it. `sample` is called in a process of its own for each window (agent.h).
struct error *agent_command(struct options *options,
                            int (*sample)(void *context, struct run_told *told), void *context);

// Sets the options of a run to those for one of the agent's windows. Call it in a sampler's
// process.
void agent_command_prepare(struct options *options);

// The command line of `profiler agent`.

// Where rules come from: a word of the command line, one of --exclude, or a file of them.
struct agent_rule_source {
	enum { RULE_CHOOSES, RULE_EXCLUDES, RULE_FILE } kind;
	const char *value; // borrowed from the command line
};

struct agent_options {
	bool list;
	struct agent_rules rules;
	struct agent_rule_source *sources; // of the rules, in order
	size_t n_sources, sources_capacity;
	int64_t window_ns, period_ns; // each process is sampled for a window in each period
	int64_t min_age_ns;
	size_t max_processes;   // sampled at a time
	double max_cpu_percent; // of one CPU, for all together; 0: no limit
	uint64_t max_memory;    // bytes, for all together
	const char *off_file;   // while this file is there, nothing is sampled
	int lock_fd;            // of the directory, for the agent's own process alone; 0: none
	// Set in a sampler's process alone:
	const char *const *comments; // of its window, NULL-terminated; borrowed
	struct name_cache *names;    // shared by all samplers; borrowed
};

// The options of this verb alone.
extern const struct option_table agent_rows;

// For struct verb: agent_take_word takes a rule; agent_check checks that nothing is missing.
struct error *agent_take_word(struct options *options, const char *word);
struct error *agent_check(struct options *options);

// Reads the files of rules again. On failure the rules stay as they were.
struct error *agent_options_reread_rules(struct agent_options *agent);

void agent_options_deinit(struct agent_options *agent);

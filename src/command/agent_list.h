// SPDX-License-Identifier: MIT
// agent_list: lists what the agent would choose, and why (--list).
#pragma once

#include <stdio.h>

struct agent_options;
struct agent_process;
struct agent_rule;

struct error;
struct options;

// Writes a line for each process, chosen ones first; kernel threads are only counted.
struct error *agent_list(const struct options *options, FILE *stream);

// Decides whether the agent samples a process, and why not.
enum agent_verdict {
	AGENT_CHOSEN,
	AGENT_KERNEL,    // a kernel thread
	AGENT_OWN,       // the agent itself, its children, other profilers
	AGENT_UNMATCHED, // no rule matches it
	AGENT_EXCLUDED,
	AGENT_YOUNG,  // may be chosen later
	AGENT_SILENT, // what a rule asks for is not told within a second
	N_AGENT_VERDICTS,
};

struct agent_choice {
	enum agent_verdict verdict;
	const struct agent_rule *rule; // the one that chose or excluded it; borrowed; NULL: none
};

// Decides by what the process is like now, and reads what it needs for that. A process that is
// chosen may still turn out not to be traceable (agent_process_obstacle).
struct agent_choice agent_choose(const struct agent_options *options,
                                 struct agent_process *process);

// SPDX-License-Identifier: MIT
// agent_choice: whether the agent samples a process, and why not.
#pragma once

struct agent_options;
struct agent_process;
struct agent_rule;

enum agent_verdict {
	AGENT_CHOSEN,
	AGENT_KERNEL,    // a kernel thread
	AGENT_OWN,       // the agent itself, its children, other profilers
	AGENT_UNMATCHED, // by any rule
	AGENT_EXCLUDED,
	AGENT_YOUNG, // it may be chosen later
	N_AGENT_VERDICTS,
};

struct agent_choice {
	enum agent_verdict verdict;
	const struct agent_rule *rule; // that chose or excluded it; borrowed; NULL: none
};

// Decides, with what the process is like now; reads what is needed for that. One that is chosen may
// turn out not to be traceable (agent_process_obstacle).
struct agent_choice agent_choose(const struct agent_options *options,
                                 struct agent_process *process);

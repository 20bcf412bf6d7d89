// SPDX-License-Identifier: MIT
// agent: watches the processes of a machine, and samples a window of each that it chooses, in turn.
//
// Each window's sampler is a process of its own (supervise.h), so that one that fails does not end
// the agent. A sampler ends when the agent does, however the agent ends.
#pragma once

struct options;
struct pusher;
struct run_told;

struct agent_sampler {
	// Samples options->pid for a window, and writes it to the file options->output, with
	// options->agent.comments. Is called in a process of its own, and returns its exit status.
	int (*sample)(void *context, struct run_told *told);
	void *context;
};

// Runs until SIGTERM, SIGINT or SIGQUIT; SIGHUP reads the rules again. Then waits until all
// samplers have ended, and then the uploader. Starts the pusher's uploader again if that is killed;
// the pusher may have none.
void agent_run(struct options *options, const struct agent_sampler *sampler, struct pusher *pusher);

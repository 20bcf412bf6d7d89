// SPDX-License-Identifier: MIT
// agent: watches the processes of a machine, and starts a sampler for a window of each that it
// chooses, in turn.
//
// A sampler is a process of its own (supervise.h), so that one that fails takes nobody with it; it
// ends when the agent does, however that ends.
#pragma once

struct options;
struct pusher;

struct agent_sampler {
	// In a process of its own: samples options->pid for a window into a file of
	// options->output, with options->agent.comments. Returns an exit status.
	int (*sample)(void *context);
	void *context;
};

// Until SIGTERM, SIGINT or SIGQUIT; then waits until all samplers have ended. `pusher`: its
// uploader is looked after; it may be none.
void agent_run(struct options *options, const struct agent_sampler *sampler, struct pusher *pusher);

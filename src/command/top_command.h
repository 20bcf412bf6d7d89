// SPDX-License-Identifier: MIT
// top_command: what `profiler top` does.
#pragma once

struct options;

// Samples what the options ask for in this process, and writes a recording to the descriptor, a
// pipe, without ever waiting for its reader; returns the exit status.
struct top_sampler {
	int (*sample)(void *context, int fd);
	void *context;
};

// Shows what threads do, live or of a recording, as the options ask; returns the exit status.
int top_command(const struct options *options, const struct top_sampler *sampler);

// SPDX-License-Identifier: MIT
// top_command: `profiler top`.
#pragma once

struct exec_kept;
struct options;

// How top samples. `sample` samples what the options ask for in the calling process, and writes a
// recording to the pipe `fd` without ever waiting for its reader, who gets its modules' files
// through the socket `files`; returns the exit status. `kept` is as in supervise().
struct top_sampler {
	int (*sample)(void *context, int fd, int files, const struct exec_kept *kept);
	void *context;
};

// Shows what the threads of a process or of a recording do; returns the exit status.
int top_command(const struct options *options, const struct top_sampler *sampler);

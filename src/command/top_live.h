// SPDX-License-Identifier: MIT
// top_live: the sampler as a process of its own, whose recording is read from a pipe while it is
// made.
//
// Whatever becomes of the reader, be it slow, stopped or killed, the sampler goes on or ends well:
// it never waits for the pipe (record_writer.h).
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct error;

struct top_live {
	pid_t pid; // the sampler; 0: it was never started, or has been waited for
	int fd;    // of its recording, non-blocking; -1: it has ended
	int told;  // what it writes to stderr; -1: that is this process's own
	int status;
};

// Runs sample(context, fd), which writes the recording to fd and returns an exit status, in a
// process of its own. `aside`: what it, and the command that it starts, would write to the terminal
// is kept from it, or read from live->told; a command reads nothing.
struct error *top_live_start(int (*sample)(void *context, int fd), void *context, bool aside,
                             struct top_live *ret);

// Asks the sampler to end, as SIGTERM does; it then writes what it has.
void top_live_stop(const struct top_live *live);

// Waits for it, and returns its exit status. A command that still runs is waited for, too.
int top_live_finish(struct top_live *live);

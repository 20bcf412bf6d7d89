// SPDX-License-Identifier: MIT
// top_live: runs the sampler as a process of its own, whose recording is read from a pipe while it
// is made.
//
// The sampler never waits for the pipe (record_writer.h): it goes on or ends properly even if the
// reader is slow, stopped or killed.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct error;
struct exec_kept;

struct top_live {
	pid_t pid; // the sampler; 0: it was never started, or has been waited for
	int fd;    // its recording, non-blocking; -1: that has ended
	int files; // the socket for its modules' files; 0: none
	int told;  // what the sampler writes to stderr; -1: it has this process's stderr
	int status;
};

// Runs sample(context, fd, files, kept), which writes the recording to fd, passes its modules'
// files to the socket `files` (passed_files.h) and returns an exit status, in a process of its own,
// with the signals blocked that are blocked now: sample() is to await them, and leaves `kept` to
// what it starts: `mask`, and if it `wraps` a command all that this process has for that. `aside`:
// keeps its messages for live->told, and the terminal from the command that it starts, which can
// neither write to it nor read from it.
struct error *
top_live_start(int (*sample)(void *context, int fd, int files, const struct exec_kept *kept),
               void *context, const sigset_t *mask, bool wraps, bool aside, struct top_live *ret);

// Asks the sampler to end, as SIGTERM does; it then writes the rest.
void top_live_stop(const struct top_live *live);

// Closes what is read from it. What it writes from now on is lost.
void top_live_close(struct top_live *live);

// Looks whether the sampler, and a command that it started, has ended, without waiting.
bool top_live_has_ended(struct top_live *live);

// Waits for the sampler, and for a command that it started; returns the sampler's exit status.
int top_live_finish(struct top_live *live);

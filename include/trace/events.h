// SPDX-License-Identifier: MIT
// events: what the sampler waits for between and within ticks: the next deadline, stops of
// tracees, the target's end, and the user's wish to end.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct origin; // supervise.h

struct events {
	int signal_fd;
	int target_fd; // a pidfd, readable once the target has ended; -1: not available
	bool child;    // SIGCHLD has come; events_child_came clears it
	bool served;   // a signal handler has taken it: what it left is to be done
	bool stop;     // SIGINT, SIGTERM or SIGHUP has come
	bool target_ended;
	bool dump; // SIGUSR1 has come; the reader clears it
	struct sigaction original_pipe, original_xfsz;
};

// Blocks the signals that are awaited here, for the whole process, and makes ready to receive
// them; SIGPIPE and SIGXFSZ are ignored. Once, first of all.
void events_init(struct events *events);

// Watches for the end of process `pid`.
void events_watch(struct events *events, int pid);

// Waits until CLOCK_MONOTONIC reaches deadline_ns, or earlier until a signal comes (SIGCHLD, which
// tells of tracees, among them) or the target ends. Says in *events what came.
void events_wait(struct events *events, int64_t deadline_ns);

// Without waiting: has SIGCHLD come since this was called last?
bool events_child_came(struct events *events);

// In a signal handler, which has taken SIGCHLD: the next wait ends at once for it.
void events_note_served(struct events *events);

// In a child, before exec: signals, timer slack and process group as the profiler was started with.
void events_restore(const struct events *events, const struct origin *origin);

// The profile is written: the signals have their usual effect again. Those that have come since
// sampling ended are forgotten.
void events_deinit(struct events *events);

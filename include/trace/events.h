// SPDX-License-Identifier: MIT
// events: waits for what the sampler waits for between and within ticks: the next deadline, stops
// of tracees, the target's end, and the user's wish to end.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct origin; // supervise.h

struct events {
	int signal_fd;
	int target_fd; // a pidfd, readable once the target has ended; -1: not available
	bool child;    // SIGCHLD has come; events_child_came clears it
	bool served;   // a signal handler has taken the stops, and left the rest to be done
	bool stop;     // SIGINT, SIGTERM or SIGHUP has come
	bool target_ended;
	bool dump; // SIGUSR1 has come; the reader clears it
	struct sigaction original_pipe, original_xfsz;
};

// Call it once, before all else. Blocks the signals that are awaited here, for the whole process,
// and prepares to receive them; ignores SIGPIPE and SIGXFSZ.
void events_init(struct events *events);

// Lets this process's waits end when they are due.
void events_sharpen(void);

// Watches for the end of process `pid`.
void events_watch(struct events *events, int pid);

// Waits until CLOCK_MONOTONIC reaches deadline_ns, a signal comes (such as SIGCHLD, which tells of
// tracees), or the target ends. Says in *events what came.
void events_wait(struct events *events, int64_t deadline_ns);

// True if SIGCHLD has come since the last call. Does not wait.
bool events_child_came(struct events *events);

// Ends the next wait at once. For a signal handler that has taken SIGCHLD.
void events_note_served(struct events *events);

// Restores, in a child before exec, the signals, timer slack and process group that the profiler
// was started with.
void events_restore(const struct events *events, const struct origin *origin);

// Call it when sampling is over and all is told or written. Forgets the signals that have come
// since sampling ended. `unblocks`: gives them their usual effect again, to end a wait for a
// command.
void events_deinit(struct events *events, bool unblocks);

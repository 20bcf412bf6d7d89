// SPDX-License-Identifier: MIT
// stop_state: tells what a thread did when its tick was due, once it has stopped. Plain values.
//
// The kernel's own letter, R, says no more than that a thread is ready: it may be on a CPU or wait
// for one. How long the thread waited for the CPU on which it stopped tells the two apart. If it
// has waited since before the tick was due, it is runnable. If it had a CPU until then, the sampler
// took it away, and the thread counts as running: on one CPU the sampler itself is on it at each
// tick.
//
// State and stack are of one moment, that of the stop: a thread that was seen asleep, and stops
// outside the call in which it slept, has gone on.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proc.h"
#include "profile.h"

enum { STOP_STATE_ANY_CALL = -2 }; // it is not known which

struct stop_seen {
	enum thread_state asked_state; // what the look showed
	int64_t asked_call; // the system call that it slept in then; -1: none; STOP_STATE_ANY_CALL
	int64_t call;       // the one in which it stopped; -1: none, or not known
	bool waits;         // that one does nothing but wait (stop_state_waits)
	bool group_stop;    // stopped by job control
	bool has_runs;      // the kernel shows the next two
	struct proc_schedstat asked, stopped; // when the tick first saw it, while it stood stopped
	int64_t due_ns;   // when the tick was due; if it began late, when the sampler got its CPU
	int64_t found_ns; // when it was found stopped
};

// Returns the state in which the tick's sample is to be counted.
enum thread_state stop_state(const struct stop_seen *seen);

// True if the system call, with its second argument, does nothing but wait, so that whoever is
// ready in it has just been woken.
bool stop_state_waits(int64_t call, uint64_t second_argument);

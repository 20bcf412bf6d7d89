// SPDX-License-Identifier: MIT
// sleep: tells whether a thread sleeps on, by how often it was scheduled. Plain values, which
// sleeper.h reads.
//
// The kernel counts how often a thread is given a CPU (its run count, schedstat). A thread that was
// asleep when it was last looked at, and has the same count now, has slept on: its stack is
// unchanged. A stop schedules it twice: once to stop, and once to go back to sleep.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "profile.h"

struct tracee_stop;

struct sleep {
	bool asleep;        // at the thread's last sample
	uint64_t runs;      // it sleeps on while its run count is at most this
	bool stop_woke_it;  // it was stopped after that, and has not been seen asleep since
	uint64_t stop_runs; // its run count while it stood stopped for its last sample; 0: none
};

enum sleep_verdict {
	SLEEP_ASK,     // the answer depends on whether the thread is blocked now
	SLEEP_ON,      // asleep since its last sample: same stack, same state
	SLEEP_READY,   // waits for a CPU since it was stopped for its last sample: same stack
	SLEEP_UNKNOWN, // it has to be looked at
};

enum sleep_blocked { SLEEP_NOT_ASKED, SLEEP_NOT_BLOCKED, SLEEP_BLOCKED };

// Tells what the thread does, if its run count is `runs` now.
enum sleep_verdict sleep_judge(const struct sleep *sleep, uint64_t runs,
                               enum sleep_blocked blocked);

// Notes that the thread was seen asleep, with that run count before and after.
void sleep_note_seen(struct sleep *sleep, uint64_t runs);

// Notes that the thread's stop is over. `was_asleep`: it was asleep when it was asked to stop.
void sleep_note_release(struct sleep *sleep, bool was_asleep, const struct tracee_stop *stop);

// What a look at a thread found (sleeper.h).
enum sleeper_look {
	SLEEPER_UNCHANGED, // asleep since its last sample: same stack, same state
	SLEEPER_WAITS,  // ready, but without a CPU, since it was stopped for its last sample: same
	                // stack
	SLEEPER_COPIED, // asleep now, in thread->call; *ret_snapshot holds it, with SP, PC and its
	                // call's arguments
	SLEEPER_HIDDEN, // asleep, but only a stop can show its stack
	SLEEPER_BARE,   // has no stack of the program's, running or not: a worker of the kernel's
	                // (io_uring)
	SLEEPER_RUNS,   // runs, or moved while it was looked at: must be stopped
	SLEEPER_GONE,   // has ended
};

// What was found of a thread before anything of it is copied.
struct sleeper_seen {
	bool known;
	enum sleeper_look look; // SLEEPER_COPIED: it is to be copied
	enum thread_state state;
	uint64_t runs; // its run count then
};

// SPDX-License-Identifier: MIT
// decision: what a tick does with a thread, from what was seen of it. Plain values: tick.c looks,
// and acts.
#pragma once

#include <stdbool.h>

#include "language.h"
#include "profile.h"
#include "sleeper.h"

enum decision {
	DECISION_NOTHING, // it was already asked to stop in this very tick
	DECISION_LOOK,
	DECISION_WAIT, // counts one more tick: it was asked to stop in an earlier one and has not
	               // stopped
	DECISION_KEEP, // counts its last sample once more
	DECISION_KEEP_RAN, // counts its last sample once more, but as running: it waits for a CPU
	DECISION_COPY, // unwinds the copy that was made of it, asleep; or makes another copy, which
	               // shows more
	DECISION_COUNT,  // counts the copy's stack: nothing can show more
	DECISION_ASK,    // asks whether its system call bears a stop
	DECISION_STOP,   // stops it: only that shows its stack, or more of it
	DECISION_MARK,   // counts a stack that was not taken: only a stop shows it, and its system
	                 // call bears none; or there is none
	DECISION_FORGET, // it has ended
};

// Decides before a look. `asked_now`: it was asked to stop in this tick; `pending`: it has not
// stopped yet.
enum decision decision_before_look(bool asked_now, bool pending);

enum bears_stop { BEARS_NOT_ASKED, BEARS_STOP, BEARS_NO_STOP };

// Decides after a look. `bears`: whether the call of a thread that is hidden bears a stop.
enum decision decision_after_look(enum sleeper_look look, enum bears_stop bears);

// What the unwound copy of a sleeper shows.
struct copy_seen {
	enum stack_end end;      // how its stack ended
	unsigned int n_again;    // how many copies were made again
	enum language_lack lack; // what a language lacks of a stack that changes to another
	bool is_elsewhere;       // a part of it lies elsewhere than where it was copied from
	bool held_at_exec;       // the profiler holds it, before its first instruction
	bool is_traced;          // by another tracer
	enum bears_stop bears;
};

// Returns COPY, COUNT, ASK or STOP.
enum decision decision_after_copy(const struct copy_seen *seen);

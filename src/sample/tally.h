// tally: a thread's ticks, counted into the profile.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "profile.h"

struct run;
struct target;
struct target_thread;

struct tally {
	struct profile *profile; // borrowed, as the next one
	struct run *run;
	int64_t from_ns; // this tick stands for the time since then, for threads that are new...
	int64_t now_ns;  // ...and up to then: that is the tick's time, in all that is counted
	bool priming;    // before the first tick: a sleeper's stack is kept for it, nothing counted
};

// One sample: the thread showed that stack at tick_ns. Then the later ticks for which it was
// pending, with the same stack.
void tally_count(struct tally *tally, struct target_thread *thread, uint32_t stack,
                 enum thread_state state, int64_t tick_ns);

// Asleep on, or asleep since it was primed: the same sample once more.
void tally_again(struct tally *tally, struct target_thread *thread);

// The same for as many ticks, of which the last one is this.
void tally_slept(struct tally *tally, struct target_thread *thread, uint64_t n_ticks);

// Certainly at the same place still, but in that state: the same stack. Its last sample stays what
// it was.
void tally_as_before(struct tally *tally, struct target_thread *thread, enum thread_state state);

// A sample whose stack could not be taken, and why.
void tally_not_sampled(struct tally *tally, struct target_thread *thread, enum stack_end why,
                       enum thread_state state, int64_t tick_ns);

// One tick more for a thread that was asked to stop and has not; counted with the stack that it
// shows when it stops. Returns for how many ticks in turn it has been so, in that state.
uint64_t tally_pending(struct tally *tally, struct target_thread *thread, enum thread_state state);

// The threads that target_forget_gone will forget have had their last sample.
void tally_ends(struct tally *tally, const struct target *target);

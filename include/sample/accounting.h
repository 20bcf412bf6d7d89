// SPDX-License-Identifier: MIT
// accounting: counts a thread's ticks into the profile. Plain values.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"

struct run_stats;

// Ticks that are counted once the thread has stopped and shown its stack.
struct pending_ticks {
	enum thread_state state;
	uint64_t count;
	int64_t last_ns; // of the last one
};

// Stretches of one state that are kept apart. A later tick is added to the last one of its state:
// each state keeps its ticks and its time, only their order is lost.
enum { MAX_PENDING_STRETCHES = 8, MAX_PENDING_TICKS = MAX_PENDING_STRETCHES + N_THREAD_STATES };

// What is counted for one thread.
struct account {
	uint32_t thread;     // in the profile's threads: its own, or that of a task that it runs
	uint32_t own;        // likewise: its own
	uint32_t task;       // the task that it runs (tasks.h); 0: none
	int64_t until_ns;    // everything up to then is counted
	uint64_t asked_tick; // the tick in which its stop was last planned (tasks.h)
	uint32_t wait;       // what it waits in, in the profile (wait_reasons.h)
	bool sampled;
	uint32_t sample;       // its last sample's id in the profile, if it was sampled
	uint32_t primed_stack; // before the first sample: the stack in which it sleeps, if it does
	enum thread_state primed_state;
	struct pending_ticks pending_ticks[MAX_PENDING_TICKS]; // since it was asked to stop
	size_t n_pending_ticks;
	// What the kernel counted since it was asked to stop: time on a CPU, and waiting for one.
	int64_t pending_cpu_ns, pending_delay_ns;
};

struct accounting {
	struct profile *profile; // borrowed, as the next one
	struct run_stats *stats;
	int64_t from_ns; // the tick counts the time since then for threads that are new...
	int64_t now_ns;  // ...and up to then: the tick's time, in all that is counted
	bool priming; // before the first tick: sleepers' stacks are kept for it, nothing is counted
};

// Counts one sample: the thread showed that stack at tick_ns. Then counts, with the same stack, the
// later ticks for which the thread was pending.
void accounting_count(struct accounting *accounting, struct account *account, uint32_t stack,
                      enum thread_state state, int64_t tick_ns);

// The two halves of accounting_count, for a thread that had gone on by the time it stopped: what it
// showed in the tick in which it was asked, and the stack of the later ticks.
void accounting_count_alone(struct accounting *accounting, struct account *account, uint32_t stack,
                            enum thread_state state, int64_t tick_ns);
void accounting_count_pending(struct accounting *accounting, struct account *account,
                              uint32_t stack);

// Counts the last sample once more: the thread has slept on since then, or since it was primed.
void accounting_again(struct accounting *accounting, struct account *account);

// Does the same for n_ticks ticks, of which this is the last.
void accounting_slept(struct accounting *accounting, struct account *account, uint64_t n_ticks);

// Counts one more sample of the unchanged stack, in another state. Does not change account->sample.
void accounting_repeat_in_state(struct accounting *accounting, struct account *account,
                                enum thread_state state);

// Counts a sample whose stack could not be taken, and why.
void accounting_not_sampled(struct accounting *accounting, struct account *account,
                            enum stack_end why, enum thread_state state, int64_t tick_ns);

// Notes one more tick for a thread that was asked to stop and has not stopped yet. It is counted
// with the stack that the thread shows when it stops. Returns how many ticks in a row found it so,
// in that state.
uint64_t accounting_pending(struct accounting *accounting, struct account *account,
                            enum thread_state state);

// SPDX-License-Identifier: MIT
// tick_look: handles one thread that a tick looks at without a stop. A part of tick.
#pragma once

#include <stdbool.h>

#include "profile.h"

struct target_thread;
struct ticker;

// Sees what the thread does, for tick_look in this tick, unless it is to be looked at later.
void tick_see(struct ticker *ticker, struct target_thread *thread);

// Looks at the thread, and does what follows (decision.h): counts it, plans its stop, or waits.
void tick_look(struct ticker *ticker, struct target_thread *thread);

// Counts a sleeper that was to be stopped with what its look showed (first_look.h), and none of the
// later ticks for which it may be pending.
void tick_count_first_look(struct ticker *ticker, struct target_thread *thread,
                           enum thread_state state, int64_t tick_ns);

// Looks again at a thread that ran a moment ago, was to be stopped, and sleeps now: it is counted
// in the state in which it was found first. One that slept, and has woken since, is counted as it
// slept.
void tick_look_after_spared(struct ticker *ticker, struct target_thread *thread);

// Counts the tick that first found the thread about to end, if it was not the last one for it.
void tick_count_exit(struct ticker *ticker, struct target_thread *thread);

// Plans the stop of a thread that only a stop can show; nothing is done to it yet. `asleep`: it
// sleeps, and will sleep on after it. In a program for another processor mode a stop shows nothing,
// and cuts calls that cannot be mended: its threads are counted at once.
void tick_plan_stop(struct ticker *ticker, struct target_thread *thread, enum thread_state state,
                    bool asleep);

// Notes that the thread runs, or that what it sleeps in is not seen.
void tick_note_unseen(struct target_thread *thread);

// Counts a thread that has slept on once more: as running if it waits for a CPU by now.
void tick_keep_sleeper(struct ticker *ticker, struct target_thread *thread);

// Notes that the thread has run, or is looked at anew: it may have another name, and children.
void tick_note_ran(struct ticker *ticker, struct target_thread *thread);

// True if it is worth looking for sleepers that wait for a CPU by now.
bool tick_looks_for_woken(const struct ticker *ticker);

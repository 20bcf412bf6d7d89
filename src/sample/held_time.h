// SPDX-License-Identifier: MIT
// held_time: measures for how long threads of the targets are held, from both sides.
//
// A thread is held from its stop to its release. The moment of the stop cannot be seen: what is
// known is when the thread was last seen unstopped, and that no thread at all stopped while the
// sampler slept.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct events;
struct run_stats;

// Serves all stopped threads, of all processes; a signal handler calls it.
struct held_time_server {
	void (*serve)(void *context); // NULL: nothing to serve
	void *context;
};

struct held_time {
	struct run_stats *stats; // borrowed; its figures are kept up to date
	struct events *events;   // borrowed
	int64_t release_ns;      // when the last held thread was let go
	int64_t quiet_ns;        // until then, for certain, nobody who was asked had stopped
	int64_t quiet_delay_ns;  // the sampler's own wait for CPUs up to that time, at most
	int64_t settled_ns;      // how much of stats->held_ns is in stats->tick_hold
	int64_t own_delay_ns;    // the sampler's own wait for CPUs, as last read; -1: unknown
	bool holding;            // threads are held while others are waited for (--stop-all)
	bool between_ticks;      // nobody counts what has stopped: room for copies stays taken
	bool no_room;            // somebody who has stopped may be held until there is some
	struct held_time_server server;
	volatile int64_t work_ns;  // when long work began, or was last interrupted; 0: no such work
	volatile bool serves;      // in the signal handler
	bool works;                // between held_time_begin_work and held_time_end_work
	bool seizes;               // likewise, after held_time_begin_seizing
	int64_t own_delay_read_ns; // when own_delay_ns was read last, at work
	int64_t work_cpu_ns;       // the sampler's CPU time at work_ns
	int64_t work_listened_ns;  // how long it had waited, by then, where signals reach it
	int own_schedstat_fd;      // of the sampler itself; -1: none
};

void held_time_init(struct held_time *hold, struct run_stats *stats, struct events *events);
void held_time_deinit(struct held_time *hold);

// Adds the time for which a thread was held: it was let go at end_ns, and may have been held from
// start_ns on. The sampler may have waited for a CPU in a part of that time; this is the machine's
// doing, and is counted separately.
void held_time_add(struct held_time *hold, int64_t start_ns, int64_t end_ns);

// Call it before threads are asked to stop.
void held_time_prepare(struct held_time *hold);

// Notes that at looked_ns nobody who was asked to stop had stopped, and nobody was held. Not to be
// used with --stop-all.
void held_time_note_none(struct held_time *hold, int64_t looked_ns);

// Waits for an event (events.h) or the time until_ns; every thread that was asked to stop must have
// been polled before. Then serves calls in their rest (tracee_serve).
void held_time_wait(struct held_time *hold, int64_t until_ns);

// Call these around long work that has nothing to do with stops: a signal handler (hold.server)
// serves threads that stop meanwhile. The result, to be passed on to held_time_end_work, is true if
// any may, and none of these calls is open yet: they may be nested.
bool held_time_begin_work(struct held_time *hold);
void held_time_end_work(struct held_time *hold, bool begun);

// Does the same for one tracee_seize, which may have to wait for an exec, and nothing else.
bool held_time_begin_seizing(struct held_time *hold);

// Begins a tick: the time for which threads were held until now counts for the last one.
void held_time_settle_tick(struct held_time *hold);

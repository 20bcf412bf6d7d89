// SPDX-License-Identifier: MIT
// held_time: for how long threads of the targets are held, measured from both sides.
//
// A thread is held from its stop to its release. The stop itself cannot be seen: what is known is
// when the thread was last seen unstopped, and that nobody at all stopped while the sampler slept.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct events;
struct run_stats;

// Serves all threads that have stopped, of all processes; called by a signal handler.
struct held_time_server {
	void (*serve)(void *context); // NULL: none has to be
	void *context;
};

struct held_time {
	struct run_stats *stats; // borrowed; its figures are kept up to date
	struct events *events;   // borrowed
	int64_t release_ns;      // when the last held thread was let go
	int64_t quiet_ns;        // up to then nobody who was asked had stopped, for certain
	int64_t quiet_delay_ns;  // the sampler's own wait for CPUs, at most, at that time
	int64_t settled_ns;      // of stats->held_ns, what is in stats->tick_hold
	int64_t own_delay_ns;    // the sampler's own wait for CPUs, as last read; -1: unknown
	bool holding;            // threads are held while others are waited for (--stop-all)
	struct held_time_server server;
	volatile int64_t work_ns; // when long work began, or was last interrupted; 0: neither
	long disk_waits;          // of the sampler until then
	int own_schedstat_fd;     // of the sampler itself; -1: none
};

void held_time_init(struct held_time *hold, struct run_stats *stats, struct events *events);
void held_time_deinit(struct held_time *hold);

// Adds the time for which a thread was held: it was let go at end_ns, and may have been held from
// start_ns on. For a part of that the sampler may have waited for a CPU, which is the machine's
// doing and counted separately.
void held_time_add(struct held_time *hold, int64_t start_ns, int64_t end_ns);

// Call it before threads are asked to stop.
void held_time_prepare(struct held_time *hold);

// Notes that at looked_ns nobody who was asked to stop had done so, and none was held. Not for
// --stop-all.
void held_time_note_none(struct held_time *hold, int64_t looked_ns);

// Waits for an event (events.h) or the time until_ns, with every thread that was asked to stop
// polled before; then serves calls in their rest (tracee_serve).
void held_time_wait(struct held_time *hold, int64_t until_ns);

// Call these around long work that has nothing to do with stops: a signal handler (hold.server)
// serves threads that stop meanwhile. True, to be passed on to held_time_end_work, if any may.
bool held_time_begin_work(struct held_time *hold);
void held_time_end_work(struct held_time *hold, bool begun);

// Begins a tick: the time for which threads were held until now belongs to the last one.
void held_time_settle_tick(struct held_time *hold);

// SPDX-License-Identifier: MIT
// stops: the threads of one process that are being stopped to be copied.
//
// All are asked at once, and each is copied and let go as it arrives; a thread that has no CPU to
// stop on, or is in uninterruptible sleep, may arrive ticks later. Until then it executes nothing
// of the program, so that its stack is still the one of the tick in which it was asked; unless it
// was asked as a sleeper, and has woken in between (first_look).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proc.h"
#include "profile.h"
#include "snapshot.h"
#include "tracee.h"

struct held_time;
struct maps;
struct target;
struct target_thread;

struct stop {
	struct target_thread *thread;
	enum thread_state state; // when it was asked; once it has stopped: when the tick was due
	bool asleep;             // it was asleep then, and will sleep on
	bool copied;             // the snapshot is there, or could not be taken
	bool failed;             // it stopped, but its stack could not be taken
	bool denied;             // the kernel did not permit it
	bool exits;              // it was not asked, since it was about to end
	bool over;               // it was let go, is gone, was denied, or not asked
	bool counted;            // what it has shown is in the profile
	int64_t free_ns;         // the last time at which it is known not to be held
	int64_t tick_ns;         // the tick in which it was asked
	int64_t due_ns;          // when that was due
	int64_t found_ns;        // when it was found stopped
	int64_t released_ns;     // when it was let go
	struct proc_schedstat first;          // when the tick first saw it
	struct proc_schedstat asked, stopped; // when it was looked at, and while it stood stopped
	struct tracee_stop how;
	struct snapshot snapshot;
};

struct stops {
	struct stop *items;
	size_t count, capacity;
	int64_t due_ns;                 // when this tick was due
	struct held_time *hold;         // borrowed
	struct snapshot_buffer *buffer; // borrowed
	const struct target *target;    // borrowed
	bool hold_all;                  // --stop-all: let all go together, with stops_let_all_go
};

void stops_init(struct stops *stops, struct held_time *hold, struct snapshot_buffer *buffer,
                const struct target *target, bool hold_all);
void stops_deinit(struct stops *stops);

// Plans to stop the thread; nothing is done to it yet.
void stops_plan(struct stops *stops, struct target_thread *thread, enum thread_state state,
                bool asleep, int64_t tick_ns);

// Asks those to stop that are planned from position `from` on. Reads, before anybody is held, what
// the stops will read where that would be slow (snapshot_rehearse); `maps` are the target's.
// `spares`: leaves out those that have fallen asleep since, or into another sleep: a stop would
// disturb their system call (syscall_mend.h), and a sleeper can be copied as it is. These are taken
// off the plan, and their thread->stop.slept_before_stop is set. Returns how many were left out.
// Those that are about to end are never asked: what is traced at its end is there to be waited for
// by its parent only when its tracer has reaped it, but its pidfd can be read before
// (pidfd_open(2)).
size_t stops_ask(struct stops *stops, const struct maps *maps, size_t from, bool spares);

// Copies (and, unless hold_all, lets go) those that have stopped by now. Returns how many of those
// that were asked at since_ns or later have not stopped; also more than 0 if the buffer has no room
// for another copy; between ticks (held_time.h) a thread is let go without one instead.
size_t stops_poll(struct stops *stops, const struct maps *maps, int64_t since_ns);

// Waits until those that were asked at since_ns or later have stopped and were copied, but not
// longer than until_ns. False if the buffer has no room for another copy; call it again once it
// has.
bool stops_wait(struct stops *stops, const struct maps *maps, long n_cpus, int64_t since_ns,
                int64_t until_ns);

// Lets go of all that were copied and are still held.
void stops_let_all_go(struct stops *stops);

// Notes that the stop has been counted: its copy is not needed any more.
void stops_note_counted(struct stops *stops, struct stop *stop);

// Takes those that were counted off the list.
void stops_strike_off(struct stops *stops);

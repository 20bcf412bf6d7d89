// SPDX-License-Identifier: MIT
// target: the process that is sampled, and its threads.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "accounting.h"
#include "proc.h"
#include "process_title.h"
#include "profile.h"
#include "resident.h"
#include "sleep.h"
#include "snapshot.h"

struct error;
struct runtimes;

// The request to stop that a thread was last given. Kept by stops.
struct stop_request {
	bool pending;                  // interrupted, but not stopped yet
	bool slept_before_stop;        // in this tick, just before it was to be asked
	int64_t asked_ns;              // the tick in which it was last asked to stop
	enum thread_state asked_state; // and its state then
	int64_t
	    exits_ns; // the tick that first found it about to end; 0: none, -1: that was counted
};

// The stack of a thread that was stopped asleep, as the stop found it (sleeper).
struct stop_picture {
	uint64_t sp, pc;
	uint64_t hash; // of the bytes from sp on
	size_t size;   // how many; 0: there is no picture
};

// What a look showed of a sleeping thread that is to be stopped (first_look).
struct first_look {
	bool known;
	struct stop_picture picture;
	uint64_t runs;       // how often it had been scheduled
	uint32_t *locations; // of its stack, leaf first; owned
	size_t n, capacity;
	enum stack_end end;
	uint8_t guessed; // GUESSED_*
	uint32_t labels;
};

// One thread of the target.
struct target_thread {
	// Its identity (target).
	int tid;
	int schedstat_fd, syscall_fd, stat_fd; // -1: opened for each use
	bool listed;                           // is in the last listing of the process's threads
	bool gone;                             // has ended
	bool is_kernels; // made by the kernel in the process: a worker that executes nothing of it

	// Its name (thread_info).
	int64_t name_due_ns; // when it is to be read again
	int64_t name_age_ns; // how old it may be by then
	bool asked_name;     // a runtime was asked for it

	// What was last seen of it without a stop (sleeper).
	bool has_schedstat;
	struct proc_schedstat last;  // as last read
	struct proc_schedstat first; // as first read in a tick...
	int64_t first_ns;            // ...which is that one; 0: none
	// What the sampler has taken from it while it ran (struct thread_figures); and when it was
	// let go from such a stop, and had waited for CPUs by then. 0: that is settled.
	int64_t held_ns, displaced_ns;
	int64_t released_ns, released_delay_ns;
	struct sleep sleep;
	struct sleeper_seen seen;
	struct proc_syscall call; // that it slept in when it was last seen asleep
	struct stop_picture picture;

	struct stop_request stop;
	struct first_look first_look;
	struct account account;
	struct snapshot_hint hint; // what its next copy goes by
	uint64_t task_runner;      // the runtime's structure for it (tasks.h); 0: not known

	// What a tick concludes from that (tick).
	bool ran;             // it has run since this was last cleared
	int64_t ran_ns;       // when it was last found to have run
	bool look_later;      // it is still to be looked at in this tick
	bool look_again;      // likewise: its stop has only shown where its stack goes on
	bool is_seen_running; // in this tick, by the first look
};

struct target {
	int pid;
	int task_fd;         // /proc/PID/task
	uint64_t n_links;    // its st_nlink at the last listing: threads + 2; 0: list again
	long last_pid;       // that the machine had given out then; -1: not known
	int tracer_pid;      // another tracer's, if it was there at the start; 0: none
	bool sees_syscalls;  // /proc/TID/syscall can be read
	bool sees_schedstat; // /proc/TID/schedstat can be read
	int max_kept_fd; // descriptors below this may be kept open; the others are for other uses
	struct resident resident;
	struct process_title title;
	const struct runtimes *runtimes; // that read their part of each copy; NULL: none; borrowed
	void (*attend)(void *);          // called now and then in long work; NULL: nothing to call
	void *attend_context;
	struct target_thread **threads; // each is valid until target_forget_gone
	size_t n_threads, threads_capacity;
};

// Finds the process of pid (or of the thread with that tid), and checks that it can be sampled,
// without touching it. If it cannot, the error says why and what to do. `is_ours`: it is a command
// that the profiler has started, and traces already.
struct error *target_open(int pid, bool is_ours, struct target *ret);
void target_close(struct target *target);

// Lists the threads again if others may be there than before: `last_pid` is the pid that the
// machine has given out last (machine_load_read); -1: not known. Appends new ones, not yet in the
// profile, with first/last read. Returns how many are new.
size_t target_list_threads(struct target *target, long last_pid);

// Opens a file of thread `tid`; -1 with errno. Never one of another process: the pid of one that
// has ended may be in use again.
int target_open_file(const struct target *target, int tid, const char *file);

// Opens a file of thread `tid` to be kept open. -1: too many are, or it cannot be opened.
int target_open_kept(const struct target *target, int tid, const char *file);

// Call it for the i-th thread in work that takes long with many threads, so that other threads that
// have stopped meanwhile are not held until the work is done.
static inline void target_attend(const struct target *target, size_t i)
{
	enum { EVERY = 16 };

	if (i % EVERY == 0 && target->attend)
		target->attend(target->attend_context);
}

// True if the thread has ended, or is no longer listed, and is not to be reaped any more.
static inline bool target_thread_is_over(const struct target_thread *thread)
{
	return (thread->gone || !thread->listed) && !thread->stop.pending;
}

// True if target_forget_gone has anything to do. Attends to stopped threads meanwhile.
bool target_has_gone(const struct target *target);

// Takes those threads off the list and frees them. None of the stops may be of one of them.
void target_forget_gone(struct target *target);

// Returns a thread that is alive, through which /proc can be read; 0: none.
int target_live_tid(const struct target *target);

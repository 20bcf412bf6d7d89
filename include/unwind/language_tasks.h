// SPDX-License-Identifier: MIT
// language_tasks: units of a program that its language runs on threads, such as goroutines. Each is
// sampled by itself. The sampler knows what a task is; a language knows how to read its own.
//
// The runtime keeps a structure for each task, and one for each thread that runs tasks (a runner).
// A task that a runner runs is seen in the thread's sample. The others are parked, and are copied
// without stopping anything.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot.h"

struct profile;
struct runtimes_setup;

enum task_state {
	TASK_CHANGES, // none of these, for a moment
	TASK_RUN,     // a thread runs it, or is in a system call for it
	TASK_OUTSIDE, // a thread's that has left the language: it has no frame, the time is the
	              // thread's own
	TASK_READY,   // parked, and ready to run
	TASK_WAITING, // parked
	TASK_DEAD,
};

// A task, as its structure said.
struct task {
	uint64_t address; // of the structure
	uint64_t id;
	enum task_state state;
	uint64_t runner;      // the one that it has; 0: none
	uint64_t only_runner; // the one that alone may run it; 0: any may
	uint64_t start_pc, creator_pc;
	uint64_t labels;  // address of the program's labels; 0: none
	int64_t since_ns; // it has waited since then or longer, CLOCK_MONOTONIC; 0: not known

	// The language's own.
	uint64_t low, high;  // its stack
	uint64_t sp, pc, bp; // where it was left
	uint64_t waiting;    // what it waits by
	uint32_t status;
	uint8_t reason; // why it waits
	uint8_t seq;    // changes whenever it is scheduled; without has_seq, always the same
	bool has_seq;
};

// What all tasks have in common that begin with the same function and were created at the same
// place.
struct task_kind {
	uint64_t start_pc, creator_pc;
	char *name;         // of the function; owned
	bool is_runtimes;   // it is one of the runtime's own...
	bool may_be_shown;  // ...but is the program's at times (is_programs)
	bool lacks_name;    // the function only calls the one that the program names
	bool has_creator;   // `creator` is known
	uint32_t creator;   // the location that created it
	uint32_t *subjects; // the sampler's: those in the profile whose tasks are gone, to be used
	                    // again
	size_t n_subjects, subjects_capacity;
};

enum task_result {
	TASK_COPIED,
	TASK_MOVED,      // a thread ran it meanwhile
	TASK_ENDED,      // its structure says so, or is another one's by now
	TASK_GONE,       // its structure cannot be read any more
	TASK_UNREADABLE, // its stack is not in memory, or not where it says
};

// A parked task's copy. It is right if the structure says the same before and after copying.
struct task_copy {
	uint32_t id;      // the caller's
	struct task task; // as it was before copying
	enum task_result result;
	struct task now;          // TASK_MOVED: as it was after copying
	struct snapshot snapshot; // TASK_COPIED
	char *labels;             // the program's (labels.h); NULL: none
	bool labels_lack;         // they cannot be read, or are too many
};

// What a parked task waits for.
struct task_wait {
	const char *reason; // in the runtime's words
	char object[64];    // "chan 0xc000012345"; "": not known, or none
	int descriptor;     // it waits until that is ready; -1: none, or not known
};

// What a language tells of a process's tasks; `tasks` is what `begin` has returned. `tid` is a live
// thread of the process.
struct language_tasks {
	void *(*begin)(const struct runtimes_setup *setup); // `setup` is borrowed until `end`
	void (*end)(void *tasks);

	// Looks for the runtime if it is time to: at the tick of that number, after n_rules
	// unwinding rules were made. False if the process has no tasks that can be read.
	// *ret_is_other: it is another one than before, whose tasks are gone.
	bool (*find)(void *tasks, int tid, uint64_t tick, uint64_t n_rules, bool *ret_is_other);
	// True if code has come or gone since, so that `find` may find more.
	bool (*has_new_code)(const void *tasks, uint64_t n_rules);
	// Call it after each walk: tells the language's copies what was found.
	void (*note_walk)(void *tasks);

	// Reads the list of all tasks. False if it cannot be read.
	bool (*list)(void *tasks, int tid);
	// Reads the next few hundred: *ret are those that are alive, by address, until the next
	// call. False if there are no more.
	bool (*list_next)(void *tasks, int tid, const struct task **ret, size_t *ret_n);
	// Reads the task at the address. False if that cannot be read, or is none.
	bool (*read)(const void *tasks, int tid, uint64_t address, struct task *ret);
	// Finds the task of a thread that was stopped, by its copy. False if there is none.
	bool (*of_snapshot)(const void *tasks, int tid, const struct snapshot *snapshot,
	                    struct task *ret);
	// Reads the runner's thread, in the target's pid namespace, and the address of the task
	// that it runs, or 0. False if it cannot be read.
	bool (*runner)(const void *tasks, int tid, uint64_t runner, uint64_t *ret_tid,
	               uint64_t *ret_address);
	// True if no thread can have run it in between, and its stack and labels are the same.
	bool (*is_same)(const struct task *task, const struct task *other);
	// False for one whose structure may say the same while it is at another place.
	bool (*may_be_kept)(const void *tasks, const struct task *task);

	// Fills in the kind of that task.
	void (*describe)(const void *tasks, const struct task *task, struct task_kind *ret);
	// Returns the name of a kind that lacks one, from the whole stack of such a task; NULL: it
	// does not tell.
	char *(*name_by_stack)(const void *tasks, const uint32_t *location_ids, size_t n);
	// True if one of a kind that may be shown does the program's work now.
	bool (*is_programs)(const void *tasks, const struct task *task);
	// Appends its labels (labels.h). False if they cannot all be read.
	bool (*labels)(const void *tasks, int tid, uint64_t labels, char **text);

	// Adds one to those that are to be copied together, as it was just read. False if there is
	// no room for more: `copy` and `drop` those that are there first.
	bool (*add)(void *tasks, const struct task *task, uint32_t id);
	size_t (*copy)(void *tasks, int tid); // returns how many
	struct task_copy *(*copied)(void *tasks, size_t i);
	void (*drop)(void *tasks);
	// Copies one by itself, beside the others. Owned by `tasks`, until the next call.
	struct task_copy *(*copy_alone)(void *tasks, int tid, const struct task *task);
	// Lets the next walk of the copy pass the frames of its thread's own stack. False if it has
	// none.
	bool (*pass_own_stack)(struct task_copy *copy);
	void (*wait)(const void *tasks, const struct task *task, const struct task_copy *copy,
	             struct task_wait *ret);
};

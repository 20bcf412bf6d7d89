// SPDX-License-Identifier: MIT
// python: CPython in a process: its threads, their frames, and what those are called.
//
// A note of a thread (runtimes.h) is what python_read finds from the thread's state on: the chain
// of its frames, and the headers of their code objects. python_merge puts the frames where the
// calls of the interpreter's loop are on the machine's stack, by addresses that such a call leaves
// in its own frame, and names them by python_codes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python_codes.h"
#include "python_layout.h"
#include "python_native.h"
#include "run_stats.h"

struct module;
struct runtimes_setup;
struct snapshot;
struct snapshot_note;
struct unwound;

enum {
	PYTHON_MAX_FRAMES = 8192, // of one thread
	PYTHON_MAX_CODES = 1024,  // different ones of one thread
	PYTHON_MAX_CHAINS = 8,    // interpreters that one thread has states of
	PYTHON_MAX_LAST = 1024,
	PYTHON_MAX_TASKS = 6, // of one thread
};

// Where asyncio keeps what a thread executes, from 3.14 on (_AsyncioDebug). All 0: it is not there.
struct python_tasks {
	uint32_t generation; // of the address space, when it was looked for
	uint32_t name, awaited_by, is_task, awaited_by_many, bytes; // in a task
	uint32_t running;                                           // in a thread's state
};

// An asyncio task: the object that is its name, a string or a number, as far as it was read.
struct python_task {
	uint8_t name[128];
};

// A thread's state in one interpreter.
struct python_thread {
	int tid;
	uint64_t state, interp;
	uint64_t interp_id; // the interpreter's own number
	uint64_t gil;       // its lock's structure; 0: not known
	uint64_t outermost; // its first function's frame; 0: not looked for
	// Frames in the heap that its last sample showed: they are read in one go, as nearly all
	// are still there. Borrowed by every list of threads that has it.
	struct python_last *last;
};

struct python_last {
	uint32_t n;
	uint64_t addresses[PYTHON_MAX_LAST];
};

// Sorted by tid. A list is never changed, but for what `last` points to: the thread that is sampled
// may be read in a signal handler.
struct python_threads {
	size_t n;
	struct python_thread items[];
};

struct python {
	const struct runtimes_setup *setup; // borrowed
	struct python_layout layout;
	uint64_t runtime; // _PyRuntime; in 3.6 the variable interp_head
	bool is_3_6;
	uint64_t
	    current; // up to 3.11: where the state is of the thread that holds the GIL; 0: none
	uint64_t code_type, string_type;
	uint64_t eval, eval_bytes; // _PyEval_EvalFrameDefault
	bool has_own_pids;         // the process is in another pid namespace
	struct python_threads *threads;
	uint64_t threads_hash; // of the heads of the interpreters' lists, when they were read
	bool wants_threads;    // a thread was not what the list says
	int64_t threads_ns, threads_cost_ns;
	size_t n_interps;
	int gil_waiter; // the thread that was found to wait for the GIL, until it is merged
	struct python_tasks tasks;
	struct python_codes codes;
	struct python_natives natives;
	uint32_t names_module; // the index of "[python]"
	uint32_t *locations;   // of the last merged stack
	size_t n_locations, locations_capacity;
};

struct python_frame {
	uint64_t address, code;
	uint64_t instr;      // up to 3.10 the index of the last one, in bytes; else an address
	uint32_t code_index; // in the note's codes; PYTHON_MAX_CODES: there were too many
	uint32_t tlbc;
	bool is_shim, is_entry, is_generator;
};

// The frames that one thread state has, and the C structures that mark calls of the loop
// (3.10-3.12).
struct python_chain {
	uint64_t interp_id;
	uint32_t first_frame, n_frames;
	uint32_t first_cframe, n_cframes;
};

// A _PyCFrame: a call of the loop, or of a library that switches stacks (greenlet).
struct python_cframe {
	uint64_t address;
	uint64_t frame; // the innermost Python frame of the call; 0: it does not tell (3.10)
};

// What follows it: the chains' frames, then cframes, then codes.
struct python_note {
	enum runtime_fault fault; // RUNTIME_FAULT_NONE: it is whole
	bool has_state;           // the thread has one
	bool holds_gil, collects;
	bool has_more_tasks; // than are there, or several for one
	uint32_t n_tasks;    // the one that it executes, the one that waits for that, and so on
	struct python_task tasks[PYTHON_MAX_TASKS];
	uint32_t n_chains, n_frames, n_cframes, n_codes;
	struct python_chain chains[PYTHON_MAX_CHAINS];
};

static inline const struct python_frame *python_note_frames(const struct python_note *note)
{
	return (const struct python_frame *)(note + 1);
}

static inline const struct python_cframe *python_note_cframes(const struct python_note *note)
{
	return (const struct python_cframe *)(python_note_frames(note) + note->n_frames);
}

static inline const struct python_code_seen *python_note_codes(const struct python_note *note)
{
	return (const struct python_code_seen *)(python_note_cframes(note) + note->n_cframes);
}

// Reads the list of threads anew if something says that it has changed.
void python_threads_update(struct python *python, int tid, int64_t now_ns);
void python_threads_destroy(struct python_threads *threads);

// The states of the thread: the first one, and how many there are.
const struct python_thread *python_threads_find(const struct python_threads *threads, int tid,
                                                size_t *ret_n);

// Looks for asyncio's tasks, if the process's files may have changed.
void python_tasks_update(struct python *python, int tid);

// Notes the task that the thread executes, and who waits for it; with a thread that stands still.
// Async-signal-safe.
void python_tasks_read(const struct python *python, int tid, uint64_t task,
                       struct python_note *note);

// The task's name, the caller's to free; NULL: not known.
char *python_tasks_name(const struct python *python, const struct python_task *task);

// The labels of a sample of a thread that executes code of that interpreter; `waits`: it sleeps in
// a futex of the GIL. As profile_intern_labels.
uint32_t python_labels(struct python *python, const struct python_note *note,
                       const struct unwound *stack, uint64_t interp_id, bool waits);

// As of struct runtime_kind.
char *python_name_futex(void *python, int tid, uint64_t futex);
char *python_name_thread(void *python, int tid);
size_t python_read(const void *python, int tid, const struct snapshot *snapshot, void *note,
                   size_t room);
bool python_merge(void *python, int tid, const struct snapshot *snapshot,
                  const struct snapshot_note *note, struct unwound *stack);

// SPDX-License-Identifier: MIT
// python: CPython in a process: its threads, their frames, and the frames' names.
//
// Beginning at the thread's state, python_read finds the chain of its frames and the headers of
// their code objects: that is the note (runtimes.h). python_merge puts the frames where the
// interpreter's loop is on the machine's stack, by addresses that each call of the loop leaves in
// its own frame, and takes the frames' names from python_codes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "python_codes.h"
#include "python_layout.h"
#include "python_native.h"
#include "python_pieces.h"
#include "run_stats.h"

struct module;
struct runtimes_setup;
struct snapshot;
struct snapshot_note;
struct unwound;

enum {
	PYTHON_MAX_FRAMES = 8192, // of one thread, the innermost
	PYTHON_MAX_OUTER = 64,    // and the outermost, if there are more
	PYTHON_FIRST_FRAME = 32,  // where the first frame is in the oldest chunk of a data stack
	PYTHON_MAX_CODES = 1024,  // different code objects of one thread
	PYTHON_MAX_CHAINS = 8,    // interpreters that one thread has states of
	PYTHON_MAX_TASKS = 6,     // of one thread
	PYTHON_MAX_OTHERS = 256,
};

// Offsets by which asyncio's tasks are found, from 3.14 on (_AsyncioDebug). All 0: not there.
struct python_tasks {
	uint32_t generation; // of the address space, when they were looked for
	uint32_t name, awaited_by, is_task, awaited_by_many, bytes; // in a task
	uint32_t running;                                           // in a thread's state
};

// An asyncio task: the beginning of the object that is its name, a string or a number.
struct python_task {
	uint8_t name[128];
};

// A thread's state in one interpreter.
struct python_thread {
	int tid;
	uint64_t state, interp;
	uint64_t interp_id; // the interpreter's own number
	uint64_t gil;       // the GIL's structure; 0: not known
	uint64_t thread_id; // what the state says of its thread, as python_threads_id
	size_t place;       // in the interpreters' lists, which begin with the newest
	uint32_t n_missed;  // lists that were cut before they came to it, in a row
	uint64_t outermost; // the frame of the thread's first function; 0: not looked for
	uint64_t root;      // the oldest chunk of its data stack; 0: not known
	// In a thread's first state: what to read of the thread; NULL: nothing is known. Shared by
	// all lists that have this state.
	struct python_plan *plan;
};

// Sorted by tid, a thread's oldest state first. A list never changes, except for its plans and the
// places of frames, as it may be read in a signal handler.
struct python_threads {
	size_t n;
	struct python_thread items[];
};

// A thread that had neither a state nor the interpreter's loop on its stack.
struct python_other {
	int tid;
	uint32_t n_seen; // like that, in a row
};

struct python {
	const struct runtimes_setup *setup; // borrowed
	struct python_layout layout;
	uint64_t runtime; // _PyRuntime; in 3.6 the variable interp_head
	bool is_3_6;
	bool is_early; // the layout could not be told yet
	// Up to 3.11: the address at which is the state of the thread that holds the GIL; 0: none.
	uint64_t current;
	uint64_t code_type, string_type;
	uint64_t eval, eval_bytes; // _PyEval_EvalFrameDefault
	bool has_own_pids;         // the process is in another pid namespace
	struct python_threads *threads;
	uint64_t threads_hash; // of the heads of the interpreters' lists, when these were read
	bool wants_threads;    // the list was seen to be out of date
	struct python_other others[PYTHON_MAX_OTHERS]; // by tid
	int64_t threads_ns, threads_cost_ns;
	size_t n_interps;
	int gil_waiter; // a thread that was found to wait for the GIL, until its stack is merged
	struct python_tasks tasks;
	struct python_codes codes;
	struct python_natives natives;
	uint32_t names_module; // the index of "[python]"
	uint32_t *locations;   // of the last merged stack
	size_t n_locations, locations_capacity;
};

struct python_frame {
	uint64_t address, code;
	uint64_t instr; // the last instruction: up to 3.10 its index in bytes, then its address
	uint32_t code_index; // in the note's codes; PYTHON_MAX_CODES: there were too many
	uint32_t tlbc;
	uint32_t line; // as the frame's object has it; 0: the instruction tells it
	bool is_shim, is_entry, is_generator;
};

// The frames of one thread state, and the C structures that mark calls of the loop (3.10-3.12).
struct python_chain {
	uint64_t interp_id;
	uint32_t first_frame, n_frames; // the innermost ones, and behind them the outermost ones:
	uint32_t n_outer;               // so many, if the chain is cut
	bool is_cut;                    // there are more frames between
	uint32_t first_cframe, n_cframes;
};

// A _PyCFrame: a call of the loop, or of a library that switches stacks (greenlet).
struct python_cframe {
	uint64_t address;
	uint64_t frame; // the innermost Python frame of the call; 0: not told (3.10)
};

// The head of a note. It is followed by the chains' frames, their cframes, their codes, and what
// was asked for to read all this.
struct python_note {
	enum runtime_fault fault; // RUNTIME_FAULT_NONE: it is whole
	bool has_state;           // the thread has a state
	bool has_others;          // a state was listed for it that is another thread's by now
	bool holds_gil, collects;
	bool has_more_tasks; // there are more, or several that wait for the same one
	uint32_t n_tasks;    // the task that it executes, the task that waits for that, and so on
	struct python_task tasks[PYTHON_MAX_TASKS];
	uint32_t n_chains, n_frames, n_cframes, n_codes, n_asked;
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

static inline const struct python_piece *python_note_asked(const struct python_note *note)
{
	return (const struct python_piece *)(python_note_codes(note) + note->n_codes);
}

// Reads the list of threads anew if something says that it has changed.
void python_threads_update(struct python *python, int tid, int64_t now_ns);
void python_threads_destroy(struct python_threads *threads);

// Finds the thread's states: returns the first, and sets *ret_n to how many there are.
const struct python_thread *python_threads_find(const struct python_threads *threads, int tid,
                                                size_t *ret_n);

// Looks for the state of a thread that is not listed, perhaps because it is new, among the newest
// ones. False: it has none there, or was noted as another's. Async-signal-safe.
bool python_threads_find_newest(const struct python *python, int tid, struct python_thread *ret);

// Notes whether the thread, which has no state, is one that Python knows nothing of, such as a
// library's own, or a new one that does not come to its function yet. After some time it is not
// looked for again.
void python_threads_note_other(struct python *python, int tid, bool is_other);

// What tells the thread of a state, which was read, from others: a tid, or the address of a
// pthread.
uint64_t python_threads_id(const struct python *python, const uint8_t *state);

// Returns the oldest chunk of the data stack of the thread with that state; 0: not found, or the
// version has none.
uint64_t python_threads_find_root(const struct python *python, int tid, uint64_t state);

// Looks for asyncio's tasks, if the process's files may have changed.
void python_tasks_update(struct python *python, int tid);

// Notes the task that the thread, which stands still, executes, and the tasks that wait for it.
// Async-signal-safe.
void python_tasks_read(const struct python *python, struct python_pieces *pieces, uint64_t task,
                       struct python_note *note);

// Returns the task's name, which the caller frees; NULL: not known.
char *python_tasks_name(const struct python *python, const struct python_task *task);

// Returns the labels (profile_intern_labels) for the sample of a thread that executes code of that
// interpreter. `waits`: it sleeps in a futex of the GIL.
uint32_t python_labels(struct python *python, const struct python_note *note,
                       const struct unwound *stack, uint64_t interp_id, bool waits);

// For struct language.
char *python_name_futex(void *python, int tid, uint64_t futex);
char *python_name_thread(void *python, int tid);
void python_look_ahead(const void *python, int tid, void *note, size_t room);
size_t python_read(const void *python, int tid, const struct snapshot *snapshot, void *note,
                   size_t room);
bool python_merge(void *python, int tid, const struct snapshot *snapshot,
                  const struct snapshot_note *note, struct unwound *stack);

// Returns the word at that place of an object that was read.
static inline uint64_t python_word_at(const uint8_t *bytes, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

bool python_read_word(const struct python *python, int tid, uint64_t address, uint64_t *ret);

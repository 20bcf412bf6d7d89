// SPDX-License-Identifier: MIT
// profile: holds what was sampled, as numbers: locations, stacks, threads and counted samples.
//
// Everything is interned: a location is a (module, address in the file) pair, a stack a list of
// location ids, a sample its stack, thread, state and wait with their sums. Ids are positions in
// the arrays below, dense and stable. Names come later (symbolize.h).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash.h"

// What a thread did at the tick.
enum thread_state {
	THREAD_RUNNING,  // on a CPU, or displaced from it by the sampler alone
	THREAD_SLEEPING, // waiting, interruptibly
	THREAD_DISK,     // waiting, uninterruptibly (disk sleep, vfork)
	THREAD_STOPPED,  // stopped by a signal or a debugger
	THREAD_RUNNABLE, // ready, waiting for a CPU; or a task that no thread runs
	N_THREAD_STATES,
};

// "running", "sleeping", "disk", "stopped" or "runnable".
const char *thread_state_name(enum thread_state state);

// Returns the state of that name, which has `length` bytes; N_THREAD_STATES: there is none.
enum thread_state thread_state_named(const char *name, size_t length);

// True if a thread in that state waits for something other than a CPU.
bool thread_state_is_blocked(enum thread_state state);

// Why a stack ends where it does.
enum stack_end {
	STACK_COMPLETE,       // reached the thread's root
	STACK_NO_RULE,        // no unwinding rule for the last frame's pc
	STACK_UNREADABLE,     // memory that a rule needs was not readable
	STACK_NOT_COPIED,     // the stack is larger than what is copied of it
	STACK_NO_PROGRESS,    // the next frame would not lie above the last one
	STACK_TOO_DEEP,       // more frames than --max-depth
	STACK_NEEDS_REGISTER, // a rule needs a register whose value is not known
	STACK_SWITCHED,       // it continues on another stack, which is not at hand (Go's, Java's)
	STACK_NOT_SAMPLED,    // the thread was there, but its stack could not be taken at all
	STACK_NO_ROOM,        // there are too many different stacks: only the leaf is kept
	STACK_NOT_RESIDENT,   // a page of it was not in memory, and is not waited for
	STACK_FOREIGN,        // the program is for another processor mode (32-bit)
	STACK_NO_RETURN, // a return address of 0 below the stack's top, or none that a call left
	STACK_UNSEEN,    // no tick fell into this time, which the kernel counted (weights.h)
	N_STACK_ENDS,
};

// Returns a few words, such as "no unwinding rule"; for STACK_COMPLETE "complete".
const char *stack_end_name(enum stack_end end);

// How callers were found in code without unwinding rules, if any were.
enum {
	GUESSED_BY_FRAME_POINTER = 1,
	GUESSED_BY_CODE = 2, // by what the code does until it returns
};

// The code of a location whose function did not call the one below it, but created the task.
enum { LOCATION_CREATOR = INT32_MAX };

struct location {
	uint32_t module;  // position in struct modules
	uint32_t code;    // which of several codes that were at the address, one after the other
	                  // (perf_map); 0: not known; LOCATION_CREATOR
	uint64_t address; // in the module's file, as in its symbol table; for a return address
	                  // one less, so that it lies within the call
};

struct stack {
	uint32_t first;    // position in location_ids of the leaf
	uint32_t n_frames; // leaf first
	enum stack_end end;
	uint8_t guessed;   // GUESSED_*
	uint32_t n_blamed; // of its frames, from the leaf on: those of threads that it waits for
	                   // (blame.h)
};

enum { WAIT_NONE = 0, NO_SYSCALL = -1 };

// What a thread that does not run waits in, on the kernel's side.
struct wait {
	int syscall;      // the system call's number, or NO_SYSCALL
	char *descriptor; // what the call's descriptor is, as /proc/PID/fd has it; "": none, or not
	                  // known; any bytes but NUL
	char *meaning;    // the same in better words, if they were found later; else NULL
	char *frames;     // kernel functions, leaf first, each with a newline; "": not known
	char *reason;     // why a task waits, in the words of its runtime; "": it is not one; any
	                  // bytes but NUL
};

#define WAIT_FOLDED "[...]"

struct process_name {
	int pid;
	int64_t from_ns; // CLOCK_MONOTONIC; 0: the first of this pid, else it had been another's
	char *name;      // as last seen, never NULL; any bytes but NUL
};

// A stretch of time in which each tick found a thread with the same stack in the same state. A
// recording, a slice of time and a timeline are all made of the stream of these spans, of all
// threads.
struct span {
	uint32_t thread;
	uint32_t sample;  // its stack and state
	uint64_t count;   // ticks; 0: there is no such span
	int64_t start_ns; // CLOCK_MONOTONIC; its ticks stand for the time from here...
	int64_t end_ns;   // ...to here
};

// What the kernel has counted for a thread up to some time (/proc/PID/schedstat).
struct thread_figures {
	int64_t at_ns;            // CLOCK_MONOTONIC; 0: not known
	int64_t cpu_ns, delay_ns; // on a CPU; waiting for one
	// What the sampler has taken from it while it ran: by holding it, and by being on its CPU,
	// which the kernel counts as waiting for one.
	int64_t held_ns, displaced_ns;
};

// What is sampled: a thread of the system's, or a task (a goroutine).
struct thread {
	int pid; // the process (tgid)
	int tid; // a task has a number that no thread has (profile_add_task)
	bool is_task;
	uint64_t task_id; // 0: several tasks, one after the other
	char *name;       // as last seen, never NULL; any bytes but NUL
	int64_t first_ns; // CLOCK_MONOTONIC; it was watched from then on...
	int64_t last_ns;  // ...until then; wall weights add up to last_ns - first_ns - away_ns
	int64_t waits_since_ns;  // a task's: it has waited since then or longer, by its
	                         // runtime; CLOCK_MONOTONIC; 0: not known
	int64_t away_ns;         // time in which it ran tasks: that time is theirs
	int64_t kernel_cpu_ns;   // CPU time between first and last, by the kernel's count
	int64_t kernel_delay_ns; // time it waited for a CPU, likewise; both -1: unknown
	struct thread_figures first_figures, last_figures; // of these (profile_note_figures)
	struct thread_figures told_figures;                // that followers know
	struct span span; // the one that it is in; its end is last_ns
	bool ended;       // it is known to have ended
	bool forgotten;   // by profile_collect: there is no such thread any more
	bool interrupted; // its span ends with the next sample, whatever that is
	uint32_t labels;  // the labels of its next sample (labels.h)
};

struct sample {
	uint32_t stack;
	uint32_t thread;
	uint32_t wait;   // WAIT_NONE: it runs, or nothing is known
	uint32_t labels; // LABELS_NONE: it has none (labels.h)
	enum thread_state state;
	uint64_t count;
	int64_t wall_ns;
	int64_t cpu_ns;   // wall_ns if running, else 0
	bool is_one_wait; // long_waits.h
	int64_t since_ns; // when that began, CLOCK_MONOTONIC
};

struct profile;

// Follows the stream of spans as it comes. Each function, which may be NULL, is called as soon as
// the profile knows; it must not count or add anything itself.
struct span_follower {
	// The thread is in a new span, threads[thread].span; *ended is the one before, with count 0
	// if there was none. At the end of the thread, or of all, there is only the one that ended.
	void (*changed)(struct span_follower *follower, const struct profile *profile,
	                uint32_t thread, const struct span *ended);
	void (*thread_named)(struct span_follower *follower, const struct profile *profile,
	                     uint32_t thread);
	void (*thread_ended)(struct span_follower *follower, const struct profile *profile,
	                     uint32_t thread);
	void (*process_named)(struct span_follower *follower, const struct profile *profile,
	                      const struct process_name *process);
	// What the kernel had counted for the thread by figures->at_ns; several times a second, if
	// that changes.
	void (*figures_noted)(struct span_follower *follower, const struct profile *profile,
	                      uint32_t thread, const struct thread_figures *figures);
	struct span_follower *next; // the profile's own
};

struct figures_range {
	struct thread_figures from, to;
};

// Sums of what profile_collect has freed.
struct profile_totals {
	uint64_t threads, stacks;
	uint64_t by_end[N_STACK_ENDS]; // ticks
	int64_t cpu_ns;                // sampled
	int64_t kernel_cpu_ns, kernel_delay_ns;
};

struct profile {
	struct location *locations;
	size_t n_locations, locations_capacity;
	uint32_t *location_ids; // of all stacks, one after the other
	size_t n_location_ids, location_ids_capacity;
	size_t max_location_ids; // 0: as many as a gigabyte holds. A new stack beyond that keeps
	                         // only its leaf
	struct stack *stacks;
	size_t n_stacks, stacks_capacity;
	struct thread *threads;
	size_t n_threads, threads_capacity;
	struct process_name *processes; // the target's first
	size_t n_processes, processes_capacity;
	struct sample *samples;
	size_t n_samples, samples_capacity;
	struct wait *waits; // the first one means WAIT_NONE
	size_t n_waits, waits_capacity;
	char **labels; // sets of labels; the first one is empty
	size_t n_labels, labels_capacity;

	struct span_follower *followers; // borrowed

	// Of a part of a profile: the kernel's figures at its begin and end, for n_figures threads;
	// borrowed. NULL: those of threads.
	const struct figures_range *figures;
	size_t n_figures;

	// Entries that profile_collect has freed, to be used again.
	uint32_t *free_samples, *free_threads;
	size_t n_free_samples, free_samples_capacity;
	size_t n_free_threads, free_threads_capacity;
	size_t collect_at;               // samples: profile_collect_is_due
	struct profile_totals forgotten; // what they stood for

	int64_t start_ns; // CLOCK_MONOTONIC of the first tick, at which the first period begins
	int64_t start_time_ns; // CLOCK_REALTIME of the first tick: profile_follow_clock
	int64_t duration_ns;   // from the first tick to the end
	int64_t period_ns;     // the nominal time between ticks
	int64_t late_ns;       // share_doubts_late_ns; 0: not known, too

	struct hash_index location_index, stack_index, sample_index, wait_index, labels_index;
};

// A zeroed struct profile is an empty profile; deinit frees all that it owns.
void profile_deinit(struct profile *profile);

// Returns the id of the location, new or known.
uint32_t profile_intern_location(struct profile *profile, uint32_t module, uint64_t address);

// Does the same for one of several codes that were at the address.
uint32_t profile_intern_code(struct profile *profile, uint32_t module, uint64_t address,
                             uint32_t code);

// Returns the id of the stack of `n` location ids, leaf first, new or known. Copies the ids.
uint32_t profile_intern_stack(struct profile *profile, const uint32_t *location_ids, size_t n,
                              enum stack_end end, uint8_t guessed);

// Returns the id of the wait, new or known; WAIT_NONE if all of it is unknown. Copies the strings.
// If there are too many different waits, keeps the system call and what sort of thing it waits for,
// with WAIT_FOLDED in the place of the rest.
uint32_t profile_intern_wait(struct profile *profile, int syscall, const char *descriptor,
                             const char *frames);

// Does the same for a task: why it waits, and for what ("chan 0xc000012345"; "": not known).
uint32_t profile_intern_reason(struct profile *profile, const char *reason, const char *object);

// True if a part of the wait was left out, as there were too many different ones.
bool profile_wait_is_folded(const struct wait *wait);

// Returns the wait whose frames go below the sample's stack: none below another thread's.
static inline uint32_t sample_leaf_wait(const struct profile *profile, const struct sample *sample)
{
	return profile->stacks[sample->stack].n_blamed > 0 ? (uint32_t)WAIT_NONE : sample->wait;
}

// Returns what the sample waits in; NULL: it runs, or nothing is known.
static inline const struct wait *sample_wait(const struct profile *profile,
                                             const struct sample *sample)
{
	return sample->wait == WAIT_NONE ? NULL : &profile->waits[sample->wait];
}

// In the descriptor of a lock, before who holds it: "NAME" TID.
#define WAIT_HOLDER ", held by "

// Returns the tid of the thread that holds the lock that is waited for, or whose end is; of a
// process that of its first thread. 0: it is not known.
int wait_holder(const struct wait *wait);

// Does the same with the text of what is waited for.
int wait_text_holder(const char *text);

// What a wait's meaning says of the process that has the other end of its pipe or connection,
// before its name and pid: "tcp 127.0.0.1:5000 -> 127.0.0.1:80, other end: "server" 4711".
#define WAIT_OTHER_END ", other end: "

// The same of the lock of a file, in its descriptor: "file lock /run/x, held by process "server"
// 4711".
#define WAIT_FILE_LOCK "file lock "
#define WAIT_FILE_LOCK_HOLDER ", held by process "

// The descriptor of a poll or select that waits for none: it sleeps.
#define WAIT_NO_DESCRIPTOR "no descriptor"

// The descriptor of a wait for whichever child ends first.
#define WAIT_ANY_CHILD "any child process"

// Returns that process, 0 if it is not known.
int wait_peer(const struct wait *wait);

// Gives the wait's descriptor better words.
void profile_explain_descriptor(struct profile *profile, uint32_t wait, const char *meaning);

// Notes the name of process `pid`; replaces a known one.
void profile_name_process(struct profile *profile, int pid, const char *name);

// Notes the name of a process that begins to be watched. If another one has had its pid, that one's
// threads, which are older, keep their process's name.
void profile_begin_process(struct profile *profile, int pid, const char *name, int64_t now_ns);

// Returns the name of the process that the thread is of, owned by the profile; "" if it is not
// known.
const char *profile_process_of(const struct profile *profile, const struct thread *thread);

// Returns the name of the process, owned by the profile; "" if it is not known.
const char *profile_process_name(const struct profile *profile, int pid);

// Returns how many threads there were, as in "53 threads (2 at the end)", "60 threads and
// goroutines"; the caller frees.
char *profile_threads_text(const struct profile *profile) __attribute__((returns_nonnull));

// Adds a thread, watched from `now_ns` on; returns its id.
uint32_t profile_add_thread(struct profile *profile, int pid, int tid, const char *name,
                            int64_t now_ns);

// Does the same for a task.
uint32_t profile_add_task(struct profile *profile, int pid, uint64_t task_id, const char *name,
                          int64_t now_ns);

// Lets the entry of a task that is gone stand for another one as well, from now_ns on. It then
// has no id of its own.
void profile_reuse_task(struct profile *profile, uint32_t thread, int64_t now_ns);

// Skips the time up to now_ns, in which the thread ran tasks: it is counted as theirs. The
// thread is in no span meanwhile.
void profile_pass(struct profile *profile, uint32_t thread, int64_t now_ns);

// Notes that the first tick is at now_ns. Threads that are known already are watched from then on.
void profile_begin(struct profile *profile, int64_t now_ns);

// Moves start_time_ns if the time of day was set meanwhile, so that what is written from now on has
// the new time. Only for a profile that is being sampled: start_ns is of CLOCK_MONOTONIC.
void profile_follow_clock(struct profile *profile);

// Takes over the thread's new name, if it changed.
void profile_rename_thread(struct profile *profile, uint32_t thread, const char *name);

// Counts a sample of `thread`, which stands for the time up to `now_ns`, the end of its tick's
// period (schedule.h): counts 1 and, as wall time, what passed since that of the thread's last
// sample. `ticks` is how many ticks it stands for (1, or more after pending ones). Returns the
// sample's id.
uint32_t profile_count(struct profile *profile, uint32_t thread, uint32_t stack,
                       enum thread_state state, uint32_t wait, uint64_t ticks, int64_t now_ns);

// Does the same for a sample whose id is known: no look-up.
void profile_count_again(struct profile *profile, uint32_t sample, uint64_t ticks, int64_t now_ns);

// Notes what the kernel has counted for the thread by then. If that has changed, it had not until
// shortly before: a thread that sleeps need not be looked at.
void profile_note_figures(struct profile *profile, uint32_t thread,
                          const struct thread_figures *figures);

// Takes over figures that a follower was told.
void profile_take_figures(struct profile *profile, uint32_t thread,
                          const struct thread_figures *figures);

// Tells followers what the kernel had counted last for each thread. They know it every quarter of a
// second otherwise.
void profile_tell_figures(const struct profile *profile);

// Tells what the kernel had counted at the begin and at the end of what is in the profile.
void profile_figures(const struct profile *profile, uint32_t thread,
                     struct thread_figures *ret_from, struct thread_figures *ret_to);

// Notes that the thread has ended. Its span ends with its last sample.
void profile_end_thread(struct profile *profile, uint32_t thread);

// Ends the thread's span, if it is in one, with its last sample.
void profile_end_span(struct profile *profile, uint32_t thread);

// Ends all spans, because sampling is over. What follows is counted in new ones.
void profile_end_spans(struct profile *profile);

// Takes back from the thread's last sample what it was given of the time after end_ns, up to which
// the thread was watched; but nothing from before its span.
void profile_give_back(struct profile *profile, uint32_t thread, int64_t end_ns);

// Ends sampling at end_ns, which may lie within the period that the last samples stand for: takes
// the rest of the period back from them. Ends all spans.
void profile_end_watch(struct profile *profile, int64_t end_ns);

// Returns the span that the thread is in, as far as it has lasted; its count is 0 if it is in none.
struct span profile_open_span(const struct profile *profile, uint32_t thread);

// Adds a follower, borrowed, which is told from now on.
void profile_follow(struct profile *profile, struct span_follower *follower);

// Indexes stacks and samples (those that count something) again. For profile_collect.
void profile_reindex(struct profile *profile);

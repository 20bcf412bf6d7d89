// SPDX-License-Identifier: MIT
// run_stats: what a run of the sampler tells about itself.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "histogram.h"
#include "priority.h"

// Counts the system calls that stops have cut, and what was done for them
// (syscall_mend.h).
struct call_counts {
	uint64_t again; // the kernel entered them again, without another stop
	uint64_t rests; // continued, or executed again without being disturbed
	uint64_t parts; // the parts in which these were executed; each takes two stops
	uint64_t left;  // could not be mended
	int last_left;  // the number of the last of these; -1: not known
};

enum { RUN_MAX_LANGUAGES = 8 };

// Why a stack lacks the frames that a language's runtime has for it, or their names.
enum runtime_fault {
	RUNTIME_FAULT_NONE,
	RUNTIME_FAULT_EARLY,      // what tells the runtime's version was not in memory
	RUNTIME_FAULT_NO_STATE,   // what the runtime knows of the thread was not found
	RUNTIME_FAULT_UNREADABLE, // it could not be read, or is not in memory
	RUNTIME_FAULT_TOO_DEEP,   // more frames than are read
	RUNTIME_FAULT_NO_PLACE,   // they do not fit the machine's frames
	RUNTIME_FAULT_NO_LOOP,    // among those is no loop that executes them
	RUNTIME_FAULT_UNNAMED,    // a function was gone before its name was read
	N_RUNTIME_FAULTS,
};

// What was read of one language's stacks.
struct run_language {
	uint64_t faults[N_RUNTIME_FAULTS]; // counted in samples
	uint64_t unnamed; // frames whose function was gone before its name was read, or did not fit
	int unknown;      // a version that is not known, by a part of its number; -1: not told; 0:
	                  // none
	int guessed;      // likewise, one that is read as the newest known one; 0: none
	bool is_stripped; // a runtime is linked into the program, without symbols
	char other[64];   // a further file with a runtime, which is not read; "": none
};

// What was read of a program's tasks (unwind: language_tasks.h).
struct run_tasks {
	char version[32];       // of the runtime; "": none was seen
	const char *refused;    // why they are not read; NULL: they are
	int guessed_minor;      // the version as whose they are read; 0: theirs
	size_t n_others;        // further files with a runtime of their own, which is not read
	char other[64];         // the first one's name
	uint64_t looks;         // how often all were read
	int64_t look_ns;        // CPU time of these looks
	int64_t first_looks_ns; // part of it, until all stacks were read once
	uint64_t alive;         // at the last look
	uint64_t system;        // the runtime's own among them, which are left out
	uint64_t left_out;      // not read, as there are too many
	uint64_t copied;        // stacks that were read
	uint64_t kept;          // stacks that were still the same
	uint64_t moved;         // samples taken later: the task ran whenever it was read
	uint64_t ended;         // tasks that ended while they were first read: no sample
	uint64_t unreadable;    // stacks not in memory
};

struct run_stats {
	double frequency_hz;
	int64_t duration_ns; // asked for; 0: until the end
	uint32_t seed;       // of the places of ticks within their periods
	int64_t start_ns;    // of the first tick, CLOCK_MONOTONIC
	int64_t last_ns;     // the time up to which the last tick stands
	int64_t end_ns;      // when no thread was held any more
	uint64_t ticks;
	uint64_t missed_ticks;  // deadlines that passed before the tick before them was done
	uint64_t thinned_ticks; // left out for --max-overhead
	double max_overhead_percent;
	int64_t cpu_ns; // the profiler's own CPU time while it sampled
	enum priority_level priority;
	struct histogram tick_late; // how late the ticks that were taken or left out began
	uint64_t samples;
	size_t threads;           // alive at the last tick
	uint64_t stops;           // threads stopped
	uint64_t sleeper_stops;   // those of sleeping threads among them
	uint64_t copies;          // sleeping threads copied without a stop
	uint64_t credits;         // samples of threads that slept on: nothing was copied
	uint64_t no_cpu_samples;  // samples of threads that had no CPU since they were last stopped
	uint64_t denied;          // stops that the kernel did not permit
	int tracer_pid;           // of the process that traced a thread then; 0: none was found
	char tracer[64];          // its name
	bool lacks_files;         // at the end hardly any more could be opened
	struct call_counts calls; // calls that were cut
	uint64_t refused_children;      // those that could not be sampled (--children)
	uint64_t lost_privileges;       // programs executed while they were seized (tracee.h)
	struct histogram thread_hold;   // how long each stop held its thread
	struct histogram tick_hold;     // for how long some thread was held, in a tick with stops
	int64_t held_ns;                // for how long some thread was held, in all
	int64_t held_waiting_ns;        // part of it, while the profiler itself waited for a CPU
	uint64_t n_frames;              // unwound
	uint64_t n_frame_pointer_steps; // those found without CFI
	uint64_t n_code_steps;          // those found by their code alone
	uint64_t n_rules;               // unwinding rules made
	struct run_language languages[RUN_MAX_LANGUAGES]; // by language_position
	struct run_tasks tasks;
	bool pages_hidden;  // the kernel does not show which pages are in memory
	bool kernel_hidden; // kernel frames were asked for, but are not shown
	bool blind; // sleeping threads had to be stopped: no schedstat, or no /proc/TID/syscall
};

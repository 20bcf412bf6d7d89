// SPDX-License-Identifier: MIT
// summary: what the profiler tells on stderr at the end: what was sampled, what could not be, what
// it cost the target, and what to do next.
#pragma once

#include <stdbool.h>
#include <regex.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "children_cpu.h"
#include "profile.h"

struct blame;
struct modules;
struct profile;
struct recording;
struct run_stats;
struct symbols;
struct writer;

// What the summary of a run has to know of its profile.
struct summary_counts {
	size_t n_threads, n_stacks;    // that were seen, those forgotten since included
	uint64_t by_end[N_STACK_ENDS]; // samples
	uint64_t truncated;            // those whose stacks do not reach their root
	uint64_t lack_labels;          // samples
	uint64_t folded_waits;         // samples with profile_wait_is_folded
	bool all_slept;                // in every sample
	int64_t running_ns;            // for how long the samples found threads running
	bool knows_cpu;                // the next two are known
	int64_t cpu_ns, delay_ns;      // as the kernel counted: on a CPU, waiting for one
};

struct summary_counts summary_count(const struct profile *profile);

// What the summary of a run is made of; borrowed.
struct summary {
	const struct run_stats *stats;
	const struct summary_counts *counts;
	const struct profile *profile; // whose threads have a line each, if verbose
	const char *cpu_wait;          // the line about waits for CPUs; NULL: none
	struct children_cpu children;  // what those used that are not sampled
	bool verbose;
};

// Prints the summary of a run: one line, and one for each thing that is wrong. Verbose: all
// figures.
void summary_print(const struct summary *summary);

// Prints what leads from the master of a server, a shell or make, to the work: that its children
// used CPUs, if it was a twentieth of one at least and more than the process itself, own_ns.
void summary_print_children(const struct children_cpu *children, const struct run_stats *stats,
                            int64_t own_ns);

// Prints what of the shares is uncertain (share_doubts.h), if anything.
void summary_print_doubts(const struct profile *profile);

// Prints the line about waits for CPUs (cpu_waits_text), unless it is NULL.
void summary_print_cpu_wait(const char *text);

// Prints what of Go and Python is not read, and why.
void summary_print_unread(const struct run_stats *stats);

// Prints the same, and how many stacks lack the frames of a language's runtime.
void summary_print_runtimes(const struct run_stats *stats);

// Says if no thread has a name that matches the expression of --thread, and which names there are.
void summary_print_unmatched(const struct profile *profile, const regex_t *regex);

// Prints how many samples the filters left out, if any.
void summary_print_selection(const struct profile *profile, const bool *selected);

// Prints which goroutines are not seen, if the process has such ones (gccgo).
void summary_print_other_tasks(const struct modules *modules);

// Prints what there is to say once names were looked up. How frames without names would get them,
// if most frames have none, and summary_print_other_tasks; not if `symbols` is NULL. Which of the
// target's files could not be read, and why: their frames may have no names, and stacks may end in
// them; and which were written to meanwhile. How many debug files were fetched from servers.
void summary_print_names(const struct profile *profile, const struct modules *modules,
                         const struct symbols *symbols);

// Returns the summary in one line, for formats that can hold a comment. The caller frees.
char *summary_comment(const struct run_stats *stats, const struct summary_counts *counts);

// Prints how much of the waiting --blame could follow. `is_recording`: of one, which may lack
// holders.
void summary_print_blame(const struct blame *blame, bool is_recording);

// Prints what --waits has found, and what its limit left out.
void summary_print_waits(const struct profile *view, int64_t min_ns, size_t n_threads,
                         size_t n_left_out);

// Prints where the profile was written, and what to run with it.
void summary_print_output(const struct writer *writer, const char *name);

// What of a recording that was replayed is missing or in doubt; nothing of a whole one.
void summary_print_damage(const struct recording *recording);

// Writes lines such as
// "212 goroutines wait for mutex 0xc000012345, the oldest for 41 s or more".

// Writes a line for each thing that at least two of the profile's goroutines wait for. Lines about
// locks begin with lock_prefix, others with prefix. After max_lines, says how many more there are.
void wait_group_text_write(const struct profile *profile, const char *lock_prefix,
                           const char *prefix, size_t max_lines, FILE *stream);

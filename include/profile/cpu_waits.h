// SPDX-License-Identifier: MIT
// cpu_waits: for how long a process's threads had CPUs and waited for them, by the kernel's count
// rather than by samples; and what kept them waiting.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

// Sums since sampling began, or what one reading has more than another.
struct cpu_waits {
	int64_t at_ns;    // when they were read, from the first tick on
	int64_t cpu_ns;   // all sampled threads together had a CPU for so long...
	int64_t delay_ns; // ...and waited for one, as the thread's kernel_delay_ns
	uint32_t n_cpus;  // that those threads may use; 0: not known
	uint32_t
	    limit; // the CPU time that their control group may use, in thousandths of a CPU; 0: any
	uint64_t n_periods, n_throttled; // of that limit: in how many it was used up
	int64_t throttled_ns;            // for how long its threads were not allowed to run
};

// Readings, in the order of time.
struct cpu_log {
	struct cpu_waits *items;
	size_t count, capacity;
};

void cpu_log_add(struct cpu_log *log, const struct cpu_waits *figures);
void cpu_log_deinit(struct cpu_log *log);

// Returns the figures of a part of the time, as near as there are readings; its at_ns is how long
// that is. All are 0 if nothing was read of it.
struct cpu_waits cpu_log_between(const struct cpu_log *log, int64_t from_ns, int64_t to_ns);

// Sets cpu_ns and delay_ns to the sums of the profile's threads; -1: the kernel does not tell.
void cpu_waits_sum(struct cpu_waits *figures, const struct profile *profile);

// Returns how many threads there are at a time, on average, of those that have at least a hundredth
// of the time that all were on a CPU or waiting for one, by samples.
size_t cpu_waits_count_threads(const struct profile *profile);

// Returns a line such as "waited 21.8 s for a CPU, and ran for 1.34 s: 8 threads share 1 CPU"
// if the threads waited for CPUs for more than a fifth of the time in which they were not blocked,
// and for more than a tenth of at_ns; else NULL. `n_threads`: as cpu_waits_count_threads. The
// caller frees. Sets *ret_by_others to true if other processes, which use its CPUs, are the cause.
char *cpu_waits_text(const struct cpu_waits *figures, size_t n_threads, bool *ret_by_others);

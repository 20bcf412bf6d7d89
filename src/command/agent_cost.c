// SPDX-License-Identifier: MIT
#include "agent_cost.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "memory.h"
#include "proc.h"
#include "process_list.h"

#define SAVED_NS (60 * NS_PER_SECOND)        // CPU time is saved up for so long
#define MEMORY_EVERY_NS (10 * NS_PER_SECOND) // looking takes CPU time itself
#define FIRST_WINDOW_NS (100 * NS_PER_MS)    // what one is taken to cost before any has ended

enum { MAX_ROLLUP_BYTES = 4096 };

static int64_t limit_credit(const struct agent_cost *cost, int64_t credit_ns)
{
	const int64_t limit_ns = (int64_t)(SAVED_NS * cost->cpu_percent / 100);

	return credit_ns < limit_ns ? credit_ns : limit_ns;
}

void agent_cost_init(struct agent_cost *cost, double cpu_percent, uint64_t max_memory)
{
	*cost = (struct agent_cost){
	    .cpu_percent = cpu_percent,
	    .max_memory = max_memory,
	    .last_ns = clock_now_ns(),
	    .memory_ns = clock_now_ns(),
	};
	cost->credit_ns = limit_credit(cost, INT64_MAX);
}

static void pay(struct agent_cost *cost, int64_t ns)
{
	cost->credit_ns -= ns;
	cost->total_cpu_ns += ns;
}

// Pays what a process has used since the last look; one that was started anew begins at 0.
static void pay_clock(struct agent_cost *cost, int64_t now_ns, int64_t *last_ns)
{
	if (now_ns < 0)
		return;
	pay(cost, now_ns - (now_ns >= *last_ns ? *last_ns : 0));
	*last_ns = now_ns;
}

void agent_cost_count(struct agent_cost *cost, pid_t uploader)
{
	const int64_t now_ns = clock_now_ns();
	const double earned_ns = (double)(now_ns - cost->last_ns) * cost->cpu_percent / 100;

	cost->credit_ns = limit_credit(cost, cost->credit_ns + (int64_t)earned_ns);
	cost->last_ns = now_ns;
	pay_clock(cost, clock_read_ns(CLOCK_PROCESS_CPUTIME_ID), &cost->own_cpu_ns);
	if (uploader)
		pay_clock(cost, clock_read_ns(clock_of_process(uploader)), &cost->uploader_cpu_ns);
}

static int64_t in_ns(const struct timeval *time)
{
	return time->tv_sec * NS_PER_SECOND + time->tv_usec * NS_PER_US;
}

void agent_cost_pay(struct agent_cost *cost, const struct rusage *usage)
{
	const int64_t cpu_ns = in_ns(&usage->ru_utime) + in_ns(&usage->ru_stime);

	pay(cost, cpu_ns);
	cost->windows_cpu_ns += cpu_ns;
	cost->n_windows++;
}

// Its share of the pages that it has, in bytes; 0: not told.
static uint64_t read_pss(int pid)
{
	char path[64], text[MAX_ROLLUP_BYTES];
	unsigned long long kib = 0;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	const size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	text[n] = '\0';
	const char *line = strstr(text, "\nPss:");
	// cppcheck-suppress resourceLeak ; closed by _cleanup_fclose_
	return line && sscanf(line, "\nPss: %llu", &kib) == 1 ? kib << 10 : 0;
}

static void look_at_memory(struct agent_cost *cost)
{
	size_t n;
	_cleanup_free_ int *pids = process_tree(getpid(), &n);

	cost->memory = 0;
	for (size_t i = 0; i < n; i++)
		cost->memory += read_pss(pids[i]);
	if (cost->memory > cost->peak_memory)
		cost->peak_memory = cost->memory;
}

bool agent_cost_allows(struct agent_cost *cost, size_t n_running)
{
	const int64_t each_ns =
	    cost->n_windows ? cost->windows_cpu_ns / (int64_t)cost->n_windows : FIRST_WINDOW_NS;

	if (cost->cpu_percent > 0 && cost->credit_ns < (int64_t)(n_running)*each_ns)
		return false;
	if (cost->last_ns - cost->memory_ns >= MEMORY_EVERY_NS) {
		cost->memory_ns = cost->last_ns;
		look_at_memory(cost);
	}
	return cost->memory <= cost->max_memory;
}

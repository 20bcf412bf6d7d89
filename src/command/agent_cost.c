// SPDX-License-Identifier: MIT
#include "agent_cost.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "memory.h"
#include "process_list.h"
#include "snapshot.h"

#define SAVED_NS (60 * NS_PER_SECOND) // CPU time is saved up for so long
#define MIN_LOOK_NS NS_PER_SECOND     // between looks at the memory
#define MAX_LOOK_NS (10 * NS_PER_SECOND)
#define FIRST_WINDOW_NS (100 * NS_PER_MS) // what one is taken to cost before any has ended

enum { COST_FACTOR = 1000 }; // after a look, wait this many times its cost

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

static int64_t limit(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

void agent_cost_pay(struct agent_cost *cost, const struct rusage *usage)
{
	const int64_t cpu_ns =
	    clock_of_timeval(&usage->ru_utime) + clock_of_timeval(&usage->ru_stime);

	pay(cost, cpu_ns);
	cost->windows_cpu_ns += cpu_ns;
	cost->n_windows++;
}

bool agent_cost_looks_over_limit(struct agent_cost *cost)
{
	if (cost->last_ns < cost->look_ns)
		return false;
	const int64_t start_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	cost->memory = agent_memory_of(getpid());
	const int64_t rest_ns = COST_FACTOR * (clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns);
	cost->look_ns = cost->last_ns + limit(rest_ns, MIN_LOOK_NS, MAX_LOOK_NS);
	if (cost->memory > cost->peak_memory)
		cost->peak_memory = cost->memory;
	return cost->memory > cost->max_memory;
}

bool agent_cost_allows(struct agent_cost *cost, size_t n_running)
{
	const int64_t each_ns =
	    cost->n_windows ? cost->windows_cpu_ns / (int64_t)cost->n_windows : FIRST_WINDOW_NS;

	if (cost->cpu_percent > 0 && cost->credit_ns < (int64_t)(n_running)*each_ns)
		return false;
	return cost->memory <= cost->max_memory;
}

enum { MAX_ROLLUP_BYTES = 4096 };

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

uint64_t agent_memory_of(int pid)
{
	size_t n;
	_cleanup_free_ int *pids = process_tree(pid, &n);
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += read_pss(pids[i]);
	return bytes;
}

// What this process has already counts, as the kernel counts it (proc(5), statm: data), and what is
// only reserved.
void agent_memory_limit(uint64_t bytes)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long pages;
	struct rlimit limit;

	if (!file || fscanf(file, "%*u %*u %*u %*u %*u %llu", &pages) != 1 ||
	    getrlimit(RLIMIT_DATA, &limit) != 0)
		return;
	const rlim_t most = pages * (rlim_t)sysconf(_SC_PAGESIZE) + SNAPSHOT_BUFFER_BYTES + bytes;
	if (limit.rlim_cur > most) // RLIM_INFINITY is the largest
		limit.rlim_cur = most;
	setrlimit(RLIMIT_DATA, &limit);
}

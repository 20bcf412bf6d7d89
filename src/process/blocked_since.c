// SPDX-License-Identifier: MIT
#include "blocked_since.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "memory.h"
#include "proc.h"

enum { SCHED_BYTES = 1024, MAX_CPUS = 8192, NS_DIGITS = 6 };

// Returns the line of the key; NULL: there is none. The heading begins with the thread's own name,
// which may be anything the thread likes, even that key, or lines.
static const char *find_line(const char *text, const char *key)
{
	const char *found = NULL;

	for (const char *at = strstr(text, key); at; at = strstr(at + 1, key))
		if (at == text || at[-1] == '\n')
			found = at;
	return found;
}

// Parses "se.exec_start   :    2012345.123456": milliseconds with six decimals.
int64_t blocked_since_parse(const char *text)
{
	static const char key[] = "se.exec_start";
	const char *at = find_line(text, key);
	char *end;

	if (!at)
		return -1;
	at += strlen(key);
	at += strspn(at, " \t:");
	const long long ms = strtoll(at, &end, 10);
	if (end == at || ms < 0 || ms > INT64_MAX / NS_PER_MS - 1)
		return -1;
	int64_t rest = 0;
	const char *digit = *end == '.' ? end + 1 : "";
	for (int i = 0; i < NS_DIGITS; i++) {
		const bool is_digit = *digit >= '0' && *digit <= '9';
		rest = 10 * rest + (is_digit ? *digit - '0' : 0);
		digit += is_digit;
	}
	return ms * NS_PER_MS + rest;
}

static int64_t exec_start(int fd)
{
	char text[SCHED_BYTES];
	const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return -1;
	text[n] = '\0';
	return blocked_since_parse(text);
}

struct thread_run {
	size_t position;  // in the caller's list
	int cpu;          // the CPU that the thread runs on, or ran on last; -1: not known
	int64_t start_ns; // by that CPU's task clock
	int64_t age_ns;   // of the thread
};

static void read_run(int pid, int tid, struct thread_run *run)
{
	const long ticks_per_second = sysconf(_SC_CLK_TCK);
	struct proc_stat stat;

	run->cpu = -1;
	if (!proc_read_stat(-1, pid, tid, &stat) || stat.processor >= MAX_CPUS ||
	    ticks_per_second <= 0)
		return;
	_cleanup_close_ int fd = proc_open(pid, tid, "sched");
	const int64_t tick_ns = NS_PER_SECOND / ticks_per_second;
	run->start_ns = exec_start(fd);
	run->cpu = (int)stat.processor;
	run->age_ns = clock_read_ns(CLOCK_BOOTTIME) - (int64_t)stat.start_time * tick_ns + tick_ns;
}

static int compare(const void *a, const void *b)
{
	return ((const struct thread_run *)a)->cpu - ((const struct thread_run *)b)->cpu;
}

// Returns the CPU's task clock at now_ns; -1: not known. On the way there this thread is scheduled,
// or else yields, so that the time of its own last run is this moment.
static int64_t task_clock(int cpu, int64_t now_ns)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (cpu >= CPU_SETSIZE || sched_setaffinity(0, sizeof(set), &set) != 0)
		return -1;
	sched_yield();
	_cleanup_close_ int fd = proc_open(getpid(), getpid(), "sched");
	const int64_t start_ns = exec_start(fd);
	return start_ns < 0 ? -1 : start_ns - (clock_now_ns() - now_ns);
}

void blocked_since_read(int pid, const int *tids, size_t n, int64_t now_ns, int64_t *ret_ns)
{
	_cleanup_free_ struct thread_run *runs = memory_alloc_zeroed(n + 1, sizeof(*runs));
	int64_t clock_ns = -1;
	int clock_cpu = -1;
	cpu_set_t own;

	const bool has_own = sched_getaffinity(0, sizeof(own), &own) == 0;
	for (size_t i = 0; i < n; i++) {
		ret_ns[i] = -1;
		runs[i].position = i;
		read_run(pid, tids[i], &runs[i]);
	}
	qsort(runs, n, sizeof(*runs), compare);
	for (size_t i = 0; has_own && i < n; i++) {
		const struct thread_run *run = &runs[i];
		if (run->cpu < 0 || run->start_ns < 0)
			continue;
		if (run->cpu != clock_cpu)
			clock_ns = task_clock(run->cpu, now_ns);
		clock_cpu = run->cpu;
		const int64_t since_ns = clock_ns > run->start_ns ? clock_ns - run->start_ns : 0;
		if (clock_ns >= 0 && since_ns <= run->age_ns)
			ret_ns[run->position] = since_ns;
	}
	if (has_own)
		sched_setaffinity(0, sizeof(own), &own);
}

// SPDX-License-Identifier: MIT
#include "stayers.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "first_process.h"
#include "memory.h"
#include "parting.h"
#include "proc.h"
#include "process_list.h"
#include "supervise.h"

#define STAY_NS (2 * NS_PER_SECOND)
#define STEP_NS (10 * NS_PER_MS)

static bool adopts;

void stayers_adopt(void)
{
	adopts = parting_ends_others() && prctl(PR_SET_CHILD_SUBREAPER, 1UL) == 0;
}

static bool is_worker(int pid)
{
	char name[PROC_NAME_SIZE];

	return proc_read_name(pid, pid, name) && strcmp(name, SUPERVISE_WORKER_NAME) == 0;
}

// Sends the signal to those that stay, and reaps those that have ended; returns how many are left.
static size_t tell(int number)
{
	size_t n, n_left = 0;
	_cleanup_free_ int *pids = process_children(getpid(), &n);

	for (size_t i = 0; i < n; i++) {
		if (!is_worker(pids[i]) || waitpid(pids[i], NULL, WNOHANG) != 0)
			continue;
		n_left++;
		kill(pids[i], number);
	}
	return n_left;
}

static void tell_and_wait(int number)
{
	const struct timespec step = clock_timespec(STEP_NS);
	const int64_t until_ns = clock_now_ns() + STAY_NS;

	for (size_t n = tell(number); n > 0 && clock_now_ns() < until_ns; n = tell(0))
		nanosleep(&step, NULL);
}

void stayers_reap(bool (*is_own)(const void *context, pid_t pid), const void *context)
{
	pid_t pid;

	while (adopts && (pid = first_process_ended_child()) && !is_own(context, pid))
		waitpid(pid, NULL, WNOHANG);
}

void stayers_end(void)
{
	if (!adopts)
		return;
	tell_and_wait(0);
	tell_and_wait(SIGTERM);
}

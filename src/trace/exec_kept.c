// SPDX-License-Identifier: MIT
#include "exec_kept.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory.h"

enum {
	MAX_PENDING = 1 << 16, // somebody may go on sending
	SET_BYTES = 8,         // the kernel's signal set
	POLICY_DEADLINE = 6,   // the kernel's linux/sched.h
	FLAG_RESET_ON_FORK = 1,
};

// Not sigtimedwait(3), which makes SI_USER of SI_TKILL.
static void take_pending(const sigset_t *blocked, struct exec_kept *ret)
{
	const struct timespec now = {0};
	siginfo_t info;

	while (ret->n_pending < MAX_PENDING &&
	       syscall(SYS_rt_sigtimedwait, blocked, &info, &now, SET_BYTES) > 0)
		*array_push(ret->pending, ret->n_pending, ret->capacity) = info;
}

static unsigned long timer_slack_ns(void)
{
	return (unsigned long)prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);
}

// A child has its parent's slack for its usual one.
static void take_timer_slack(struct exec_kept *ret)
{
	ret->timer_slack_ns = timer_slack_ns();
	prctl(PR_SET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);
	ret->usual_slack_ns = timer_slack_ns();
}

void exec_kept_prepare(const struct exec_kept *kept)
{
	prctl(PR_SET_TIMERSLACK, kept->usual_slack_ns, 0UL, 0UL, 0UL);
}

// A child begins anew where SCHED_RESET_ON_FORK is set, and none is allowed with a deadline.
static void take_schedule(struct exec_kept_schedule *ret)
{
	struct exec_kept_schedule now = {0};
	const struct sched_param none = {0};

	if (syscall(SYS_sched_getattr, 0, &now, sizeof(now), 0) != 0)
		return;
	if (now.policy != POLICY_DEADLINE && !(now.flags & FLAG_RESET_ON_FORK))
		return;
	*ret = now;
	ret->nice = getpriority(PRIO_PROCESS, 0); // not told below a realtime policy
	if (now.policy == POLICY_DEADLINE)
		sched_setscheduler(0, SCHED_OTHER, &none);
}

void exec_kept_take(const sigset_t *mask, struct exec_kept *ret)
{
	int is_subreaper = 0;

	*ret = (struct exec_kept){.mask = *mask};
	take_schedule(&ret->schedule);
	take_timer_slack(ret);
	for (int i = 0; i < EXEC_KEPT_TIMERS; i++)
		setitimer(i, &(struct itimerval){0}, &ret->timers[i]);
	take_pending(mask, ret);
	prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper);
	ret->is_subreaper = is_subreaper != 0 || getpid() == 1;
	prctl(PR_SET_CHILD_SUBREAPER, 0UL);
}

// The kernel lets a process say to itself whatever the signal said (rt_sigqueueinfo(2)). One that
// was sent to the thread (tgkill(2)) is to be the thread's again.
static void give_signal(const siginfo_t *info)
{
	const pid_t pid = getpid();

	if (info->si_code == SI_TKILL)
		syscall(SYS_rt_tgsigqueueinfo, pid, pid, info->si_signo, info);
	else
		syscall(SYS_rt_sigqueueinfo, pid, info->si_signo, info);
}

// As many as there were may be more than are allowed now (RLIMIT_SIGPENDING).
static void give_signals(const struct exec_kept *kept)
{
	const struct rlimit any = {RLIM_INFINITY, RLIM_INFINITY};
	struct rlimit limit;

	if (kept->n_pending == 0 || getrlimit(RLIMIT_SIGPENDING, &limit) != 0)
		return;
	if (setrlimit(RLIMIT_SIGPENDING, &any) != 0)
		setrlimit(RLIMIT_SIGPENDING, &(struct rlimit){limit.rlim_max, limit.rlim_max});
	for (size_t i = 0; i < kept->n_pending; i++)
		give_signal(&kept->pending[i]);
	setrlimit(RLIMIT_SIGPENDING, &limit);
}

void exec_kept_give(const struct exec_kept *kept)
{
	give_signals(kept);
	prctl(PR_SET_TIMERSLACK, kept->timer_slack_ns, 0UL, 0UL, 0UL);
	if (kept->schedule.size) {
		setpriority(PRIO_PROCESS, 0, kept->schedule.nice);
		syscall(SYS_sched_setattr, 0, &kept->schedule, 0);
	}
	for (int i = 0; i < EXEC_KEPT_TIMERS; i++)
		setitimer(i, &kept->timers[i], NULL);
	if (kept->is_subreaper)
		prctl(PR_SET_CHILD_SUBREAPER, 1UL);
}

void exec_kept_deinit(struct exec_kept *kept)
{
	free(kept->pending);
	*kept = (struct exec_kept){0};
}

// SPDX-License-Identifier: MIT
#include "exec_kept.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory.h"

enum {
	MAX_PENDING = 1 << 16, // somebody may go on sending
	SET_BYTES = 8,         // the kernel's signal set
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

void exec_kept_take(const sigset_t *mask, struct exec_kept *ret)
{
	int is_subreaper = 0;

	*ret = (struct exec_kept){.mask = *mask};
	for (int i = 0; i < EXEC_KEPT_TIMERS; i++)
		setitimer(i, &(struct itimerval){0}, &ret->timers[i]);
	take_pending(mask, ret);
	prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper);
	ret->is_subreaper = is_subreaper != 0;
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

void exec_kept_give(const struct exec_kept *kept)
{
	for (size_t i = 0; i < kept->n_pending; i++)
		give_signal(&kept->pending[i]);
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

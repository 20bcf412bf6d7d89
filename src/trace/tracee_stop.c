// SPDX-License-Identifier: MIT
#include "tracee_stop.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "proc.h"
#include "thread_signals.h"

enum {
	NO_SUCH_TID = 0x7ffffffe,
	STOPPED_STATUS = 0x7f, // in waitpid's status; the signal, and the event, come above it
};

bool tracee_stop_is_permitted(void)
{
	return ptrace(PTRACE_SEIZE, NO_SUCH_TID, NULL, NULL) == 0 || errno == ESRCH;
}

pid_t tracee_stop_wait(int tid, int flags, int *ret_status)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)tid, &info, flags | WSTOPPED | WEXITED | WNOWAIT | __WALL) != 0)
		return -1;
	if (info.si_pid == 0)
		return 0;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
		return waitpid(tid, ret_status, __WALL); // it has ended: reaped
	*ret_status = info.si_status << 8 | STOPPED_STATUS;
	return tid;
}

bool tracee_stop_is_exec(int status)
{
	return WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_EXEC;
}

void tracee_stop_take(int tid, int status)
{
	if (tracee_stop_is_exec(status))
		waitpid(tid, NULL, WNOHANG | __WALL);
}

bool tracee_stop_read(int status, struct tracee_stop *ret)
{
	const int event = status >> 16;

	*ret = (struct tracee_stop){.call = -1, .exit_status = status};
	if (!WIFSTOPPED(status))
		return false;
	if (event == PTRACE_EVENT_STOP) {
		ret->interrupted = WSTOPSIG(status) == SIGTRAP;
		ret->group_stop = !ret->interrupted;
	} else if (tracee_stop_is_exec(status)) {
		ret->exec = true;
	} else if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
		ret->syscall = true; // PTRACE_O_TRACESYSGOOD
	} else if (event == 0) {
		ret->signal = WSTOPSIG(status); // signal-delivery-stop
	}
	return true;
}

bool tracee_stop_is_ours(int tid, const struct tracee_stop *stop)
{
	return stop->interrupted || (stop->signal && thread_signals_ignore(tid, stop->signal));
}

// Lets go of a stray that stands, or reaps one that has ended. False if it is neither.
static bool part_with_stray(const siginfo_t *info)
{
	struct tracee_stop stop;
	struct proc_status now;

	if (info->si_code == CLD_EXITED || info->si_code == CLD_KILLED ||
	    info->si_code == CLD_DUMPED)
		// Others are our own: who knows one by its pid reaps it, and may kill it before.
		return proc_read_status(info->si_pid, &now) && now.tracer_pid != 0 &&
		       waitpid(info->si_pid, NULL, WNOHANG | __WALL) == info->si_pid;
	return info->si_code == CLD_TRAPPED &&
	       tracee_stop_read(info->si_status << 8 | STOPPED_STATUS, &stop) &&
	       ptrace(PTRACE_DETACH, info->si_pid, NULL, (void *)(uintptr_t)stop.signal) == 0;
}

// __WCLONE leaves out our own child, the command: while job control has it stopped, it would be
// found first each time.
void tracee_stop_let_strays_go(bool (*is_seized)(int tid))
{
	const int flags = WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WCLONE;
	siginfo_t info = {0};

	while (waitid(P_ALL, 0, &info, flags) == 0 && info.si_pid != 0 && !is_seized(info.si_pid) &&
	       part_with_stray(&info))
		info = (siginfo_t){0};
}

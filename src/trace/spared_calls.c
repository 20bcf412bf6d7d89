#include "spared_calls.h"

#include <string.h>
#include <sys/syscall.h>

#include "proc.h"
#include "syscall_table.h"

enum { SECCOMP_FILTER = 2 }; // SECCOMP_MODE_FILTER

// What is left of a timeout is not known to a call that is begun again.
static bool has_timeout(const struct proc_syscall *call)
{
	switch (call->nr) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return (int)call->args[3] > 0;
	case SYS_epoll_pwait2:
	case SYS_semtimedop:
		return call->args[3] != 0;
	case SYS_rt_sigtimedwait:
		return call->args[2] != 0;
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		return call->args[4] != 0;
	default:
		return false;
	}
}

bool spared_calls_has(const struct proc_syscall *call)
{
	if (call->nr == -1)
		return false; // in no call
	const struct syscall_row *row = syscall_table_find(call->nr, call->args);
	if (!row || row->fate == SYSCALL_LEFT || row->undisturbed || has_timeout(call))
		return true;
	switch (call->nr) {
	case SYS_execve:
	case SYS_execveat:
	case SYS_exit:
	case SYS_exit_group:
		return true; // they close descriptors, which may linger
	default:
		return false;
	}
}

bool spared_calls_asks_supervisor(int pid, int tid)
{
	char function[PROC_NAME_SIZE];
	struct proc_status status;

	if (proc_read_wchan(pid, tid, function))
		return strstr(function, "seccomp") != NULL;
	return !proc_read_status(tid, &status) || status.seccomp == SECCOMP_FILTER;
}

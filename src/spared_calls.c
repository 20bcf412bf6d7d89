#include "spared_calls.h"

#include <string.h>
#include <sys/syscall.h>

#include "proc.h"

enum { SECCOMP_FILTER = 2 }; // SECCOMP_MODE_FILTER

bool spared_calls_has(const struct proc_syscall *call)
{
	switch (call->nr) {
	// The last descriptor of a socket with SO_LINGER waits for what is unsent, but not with a
	// signal pending (the kernel's sk_stream_wait_close), and a closed one cannot be closed
	// again. All of these close descriptors.
	case SYS_close:
	case SYS_close_range:
	case SYS_dup2:
	case SYS_dup3:
	case SYS_execve:
	case SYS_execveat:
	case SYS_exit:
	case SYS_exit_group:
	case SYS_shutdown:
		return true;
	// What is left of a timeout is not known to the call that is begun again.
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

bool spared_calls_asks_supervisor(int pid, int tid)
{
	char function[PROC_NAME_SIZE];
	struct proc_status status;

	if (proc_read_wchan(pid, tid, function))
		return strstr(function, "seccomp") != NULL;
	return !proc_read_status(tid, &status) || status.seccomp == SECCOMP_FILTER;
}

#include "spared_calls.h"

#include <string.h>
#include <sys/syscall.h>

#include "proc.h"
#include "resident.h"
#include "syscall_table.h"

enum {
	SECCOMP_FILTER = 2, // SECCOMP_MODE_FILTER
	// i386: ipc(2), all of System V's calls in one, and which of them has a timeout.
	I386_IPC = 117,
	IPC_SEMTIMEDOP = 4,
};

// True if the thread made the call by int $0x80. /proc/TID/syscall then shows i386's number, and
// does not tell; the instruction does that stands before the pc.
static bool is_i386(int tid, const struct proc_syscall *call)
{
	static const uint8_t int_80[] = {0xcd, 0x80};
	uint8_t code[sizeof(int_80)];

	return resident_read(NULL, tid, call->pc - sizeof(code), code, sizeof(code)) &&
	       memcmp(code, int_80, sizeof(code)) == 0;
}

// The call under its number on x86-64; -1 where it has none.
static struct proc_syscall native_call(const struct proc_syscall *call)
{
	struct proc_syscall native = *call;

	native.nr = syscall_table_from_i386(call->nr);
	if (call->nr == I386_IPC && (call->args[0] & 0xffff) == IPC_SEMTIMEDOP)
		native.nr = -1;
	return native;
}

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

static bool is_spared(const struct proc_syscall *call)
{
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

bool spared_calls_has(int tid, const struct proc_syscall *call)
{
	if (call->nr == -1)
		return false; // in no call
	if (!is_i386(tid, call))
		return is_spared(call);
	const struct proc_syscall native = native_call(call);
	return is_spared(&native);
}

bool spared_calls_asks_supervisor(int pid, int tid)
{
	char function[PROC_NAME_SIZE];
	struct proc_status status;

	if (proc_read_wchan(pid, tid, function))
		return strstr(function, "seccomp") != NULL;
	return !proc_read_status(tid, &status) || status.seccomp == SECCOMP_FILTER;
}

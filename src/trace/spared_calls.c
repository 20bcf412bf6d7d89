// SPDX-License-Identifier: MIT
#include "spared_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <string.h>
#include <time.h>

#include "descriptor.h"
#include "memory.h"
#include "proc.h"
#include "resident.h"
#include "syscall_numbers.h"
#include "syscall_rest.h"
#include "syscall_table.h"

enum { SECCOMP_FILTER = 2 }; // SECCOMP_MODE_FILTER

// True if the thread made a compat call. /proc/TID/syscall shows that call's number, but not which
// kind of call it is; the instruction before the pc does.
static bool is_compat(int tid, struct resident *resident, const struct proc_syscall *call)
{
	uint8_t code[SYSCALL_MAX_CODE_BYTES];
	const size_t n = syscall_code_bytes();

	return resident_read(resident, tid, call->pc - n, code, n) && syscall_is_compat_code(code);
}

// True for a call with a timeout: a call that begins again does not know what is left of it. The
// kernel does, of a sleep; but it writes that into the program's memory, which may be where the
// next sleep's length is.
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
	case SYS_nanosleep:
		return call->args[1] != 0;
	case SYS_clock_nanosleep:
		return !(call->args[1] & TIMER_ABSTIME) && call->args[3] != 0;
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		return call->args[4] != 0;
	case SYS_io_uring_enter:
		return call->args[3] & IORING_ENTER_EXT_ARG;
	default:
		return false;
	}
}

// True for a call with a timeout that restart_syscall(2) would go on with, under a filter, which
// may not permit that: the call is entered again as a whole then (syscall_mend.h).
static bool loses_timeout(const struct syscall_caller *caller, const struct proc_syscall *call)
{
	bool has_any = false;

	switch (call->nr) {
	case SYS_poll:
		has_any = (int)call->args[2] > 0;
		break;
	case SYS_futex: // the other operations have absolute ones
		has_any =
		    call->args[3] != 0 && (call->args[1] & (uint64_t)FUTEX_CMD_MASK) == FUTEX_WAIT;
		break;
	case SYS_nanosleep:
		has_any = true;
		break;
	case SYS_clock_nanosleep:
		has_any = !(call->args[1] & TIMER_ABSTIME);
		break;
	}
	return has_any && syscall_is_filtered(caller->tid);
}

// True for calls whose first argument is a socket with SO_RCVTIMEO or SO_SNDTIMEO, or one that
// cannot be asked though the kernel lets others be.
static bool has_socket_timeout(const struct syscall_caller *caller, const struct proc_syscall *call,
                               const struct syscall_row *row)
{
	const bool takes_socket = (row->rest && row->rest->descriptor == 1) ||
	                          call->nr == SYS_connect || call->nr == SYS_accept ||
	                          call->nr == SYS_accept4;
	const int number = (int)call->args[0];
	struct socket_facts socket;

	if (!takes_socket || descriptor_kind(caller->tid, number) != DESCRIPTOR_SOCKET)
		return false;
	return descriptor_socket(caller->pid, caller->tid, number, &socket) ? socket.has_timeout
	                                                                    : errno != ENOSYS;
}

// True if it reads a terminal that waits for a time, or one that cannot be asked: entered again it
// does not know what is left.
static bool has_terminal_timeout(const struct syscall_caller *caller,
                                 const struct proc_syscall *call, const struct syscall_row *row)
{
	const int number = (int)call->args[0];
	struct terminal_facts terminal;

	if (!row->rest || row->rest->wish != WISH_RECEIVE ||
	    !(descriptor_kind(caller->tid, number) & DESCRIPTOR_TERMINAL))
		return false;
	return descriptor_terminal(caller->pid, caller->tid, number, &terminal)
	           ? terminal.has_timeout
	           : errno != ENOSYS;
}

// True if the call may have moved a part of its data. A call that gives all that it has may,
// wherever it waits: another file may have the descriptor's number by now. A call that receives
// may, if there would be a rest after a stop with one unit moved.
static bool may_have_moved(const struct syscall_caller *caller, const struct proc_syscall *call,
                           const struct syscall_row *row)
{
	struct thread_registers thread = {0};
	struct syscall_rest unused;

	if (!row->rest)
		return false;
	// What io_uring counts is done, and only its wait is entered again: but by then another
	// thread may have taken what it has waited for.
	if (row->rest->wish == WISH_ALL || row->rest->wish == WISH_COMPLETIONS)
		return true;
	syscall_set(&thread, call->nr, 1);
	for (unsigned int i = 0; i < SYSCALL_ARGUMENTS; i++)
		syscall_set_argument(&thread, i + 1, call->args[i]);
	return syscall_rest_find(row, caller, &thread, &unused) != MEND_NOTHING;
}

// True for calls in which others see who waits: while a thread is held it does not, and what comes
// then is not handed to it, or finds nobody.
static bool is_seen_waiting(const struct proc_syscall *call)
{
	switch (call->nr) {
	case SYS_futex:
		switch (call->args[1] & (uint64_t)FUTEX_CMD_MASK) {
		case FUTEX_WAIT_REQUEUE_PI: // it ends with EAGAIN, though it may be requeued
		case FUTEX_LOCK_PI:
		case FUTEX_LOCK_PI2:
			return true;
		default:
			return false;
		}
	case SYS_fcntl: // EDEADLK is for who closes a circle
		return call->args[1] == F_SETLKW || call->args[1] == F_OFD_SETLKW;
	case SYS_flock:
	case SYS_mq_timedreceive: // mq_notify(2) is for when nobody waits
	case SYS_mq_timedsend:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_semop:
	case SYS_semtimedop: // which the C library makes of semop(3)
	case SYS_open:       // of a FIFO: ENXIO
	case SYS_creat:
	case SYS_openat:
	case SYS_openat2:
		return true;
	default:
		return false;
	}
}

static bool is_spared(const struct syscall_caller *caller, const struct proc_syscall *call)
{
	const struct syscall_row *row = syscall_table_find(call->nr, call->args);
	if (!row || row->fate == SYSCALL_LEFT || row->undisturbed || has_timeout(call) ||
	    loses_timeout(caller, call) || is_seen_waiting(call))
		return true;
	switch (call->nr) {
	case SYS_execve:
	case SYS_execveat:
	case SYS_exit:
	case SYS_exit_group:
		return true; // they close descriptors, which may linger
	default:
		return may_have_moved(caller, call, row) || has_socket_timeout(caller, call, row) ||
		       has_terminal_timeout(caller, call, row);
	}
}

bool spared_calls_has(int pid, int tid, struct resident *resident, const struct proc_syscall *call)
{
	const struct syscall_caller caller = {.tid = tid, .pid = pid};

	if (call->nr == -1)
		return false; // it is in no call
	return is_compat(tid, resident, call) || is_spared(&caller, call);
}

bool spared_calls_asks_program(int pid, int tid)
{
	char function[PROC_NAME_SIZE];
	struct proc_status status;

	if (proc_read_wchan(pid, tid, function))
		return strstr(function, "seccomp") ||
		       strcmp(function, "request_wait_answer") == 0 ||
		       strcmp(function, "handle_userfault") == 0;
	return !proc_read_status(tid, &status) || status.seccomp == SECCOMP_FILTER;
}

bool spared_calls_gives(int pid, int tid)
{
	static const char *const functions[] = {
	    "pipe_write",         "sk_stream_wait_memory", "sock_alloc_send_pskb",
	    "unix_wait_for_peer", "splice_from_pipe_next",
	};
	char function[PROC_NAME_SIZE];

	if (!proc_read_wchan(pid, tid, function))
		return false;
	for (size_t i = 0; i < array_size(functions); i++)
		if (strstr(function, functions[i])) // as in anon_pipe_write
			return true;
	return false;
}

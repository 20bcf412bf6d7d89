#include "syscall_mend.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "memory.h"
#include "proc.h"

// Of the kernel's linux/errno.h, which is not for programs.
enum {
	ERESTARTSYS_KERNEL = 512,
	ERESTARTNOINTR_KERNEL = 513,
	ERESTARTNOHAND_KERNEL = 514,        // restart, unless a handler runs
	ERESTART_RESTARTBLOCK_KERNEL = 516, // restart by restart_syscall
};

enum {
	SYSCALL_INSTRUCTION_BYTES = 2, // 0f 05
	MAX_BUFFERS = 1024,            // UIO_MAXIOV
	MAX_CALL_BYTES = 0x7ffff000,   // MAX_RW_COUNT: no call moves more
	SECCOMP_FILTER = 2,
};

static uint64_t bit_of(int signal)
{
	return 1ull << (signal - 1);
}

static uint64_t ignored_signals(const struct proc_status *status)
{
	const uint64_t by_default =
	    bit_of(SIGCHLD) | bit_of(SIGURG) | bit_of(SIGWINCH) | bit_of(SIGCONT);

	return status->signals_ignored | (by_default & ~status->signals_caught);
}

bool syscall_mend_ignores(int tid, int signal)
{
	struct proc_status status;

	return proc_read_status(tid, &status) && (ignored_signals(&status) & bit_of(signal));
}

// Is a signal waiting for the thread that it does not ignore, so that its call is rightly cut
// short?
static bool awaits_signal(int tid)
{
	struct proc_status status;

	return proc_read_status(tid, &status) &&
	       (status.signals_pending & ~status.signals_blocked & ~ignored_signals(&status));
}

// System calls that end with EINTR after any stop, handler or none (signal(7); measured: those
// that never restart, and socket calls under SO_RCVTIMEO or SO_SNDTIMEO).
static bool ends_with_eintr(unsigned long nr)
{
	switch (nr) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_io_uring_enter:
	case SYS_io_getevents:
	case SYS_io_pgetevents:
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
	case SYS_splice:
	case SYS_sendfile:
		return true;
	default:
		return false;
	}
}

static bool has_filter(int tid)
{
	struct proc_status status;

	return !proc_read_status(tid, &status) || status.seccomp == SECCOMP_FILTER;
}

// The kernel decides about restarting after the stop, by what it finds in rax then
// (arch/x86/kernel/signal.c). With ERESTARTNOHAND there the call begins again, unless a signal with
// a handler has come meanwhile: then the program sees EINTR, as without us.
bool syscall_mend_restart(int tid, struct user_regs_struct *user)
{
	const long result = (long)user->rax;

	if ((long)user->orig_rax < 0)
		return false;
	if (!(result == -EINTR && ends_with_eintr(user->orig_rax)) &&
	    !(result == -ERESTART_RESTARTBLOCK_KERNEL && has_filter(tid)))
		return false;
	user->rax = -ERESTARTNOHAND_KERNEL;
	return true;
}

enum descriptor {
	DESCRIPTOR_SOCKET = 1,
	DESCRIPTOR_PIPE = 2,
	DESCRIPTOR_TERMINAL = 4,
};

enum list {
	LIST_NONE,
	LIST_BUFFERS, // struct iovec[]
	LIST_MESSAGE, // struct msghdr
};

#define REGISTER(name) offsetof(struct user_regs_struct, name)

// Calls that move data and return short when they are interrupted. On other descriptors than those
// named they are not interrupted, or return short for reasons of their own.
static const struct partial_call {
	unsigned long nr;
	unsigned long part_nr;    // the call that moves one buffer of a list
	size_t descriptor;        // the registers that have it; rdi has offset > 0 as well
	unsigned int descriptors; // enum descriptor
	enum list list;
	size_t address, count; // address 0: the kernel keeps the position
	size_t flags;          // 0: none
	uint64_t needed_flags, rest_flags;
} partial_calls[] = {
    {.nr = SYS_write,
     .descriptor = REGISTER(rdi),
     .descriptors = DESCRIPTOR_SOCKET | DESCRIPTOR_PIPE | DESCRIPTOR_TERMINAL,
     .address = REGISTER(rsi),
     .count = REGISTER(rdx)},
    {.nr = SYS_writev,
     .part_nr = SYS_write,
     .descriptor = REGISTER(rdi),
     .descriptors = DESCRIPTOR_SOCKET | DESCRIPTOR_PIPE | DESCRIPTOR_TERMINAL,
     .list = LIST_BUFFERS},
    {.nr = SYS_sendto,
     .descriptor = REGISTER(rdi),
     .descriptors = DESCRIPTOR_SOCKET,
     .address = REGISTER(rsi),
     .count = REGISTER(rdx),
     .flags = REGISTER(r10),
     .rest_flags = MSG_NOSIGNAL},
    {.nr = SYS_sendmsg,
     .part_nr = SYS_sendto,
     .descriptor = REGISTER(rdi),
     .descriptors = DESCRIPTOR_SOCKET,
     .list = LIST_MESSAGE,
     .flags = REGISTER(rdx),
     .rest_flags = MSG_NOSIGNAL},
    {.nr = SYS_recvfrom,
     .descriptor = REGISTER(rdi),
     .descriptors = DESCRIPTOR_SOCKET,
     .address = REGISTER(rsi),
     .count = REGISTER(rdx),
     .flags = REGISTER(r10),
     .needed_flags = MSG_WAITALL},
    {.nr = SYS_recvmsg,
     .part_nr = SYS_recvfrom,
     .descriptor = REGISTER(rdi),
     .descriptors = DESCRIPTOR_SOCKET,
     .list = LIST_MESSAGE,
     .flags = REGISTER(rdx),
     .needed_flags = MSG_WAITALL},
    {.nr = SYS_sendfile,
     .descriptor = REGISTER(rdi),
     .descriptors = DESCRIPTOR_SOCKET,
     .count = REGISTER(r10)},
    // What is in the pipe goes to the socket; nobody waits for more in the pipe.
    {.nr = SYS_splice,
     .descriptor = REGISTER(rdx),
     .descriptors = DESCRIPTOR_SOCKET,
     .count = REGISTER(r8),
     .flags = REGISTER(r9),
     .rest_flags = SPLICE_F_NONBLOCK},
};

static unsigned long long *field(struct user_regs_struct *user, size_t offset)
{
	return (unsigned long long *)((char *)user + offset);
}

static const struct partial_call *find_partial_call(unsigned long nr)
{
	for (size_t i = 0; i < array_size(partial_calls); i++)
		if (partial_calls[i].nr == nr)
			return &partial_calls[i];
	return NULL;
}

// What the thread's descriptor is; 0: something else. Asks no file system that may be slow.
static unsigned int kind_of_descriptor(int tid, unsigned long long number)
{
	struct statx status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, (int)number);
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &status) != 0)
		return 0;
	if (S_ISSOCK(status.stx_mode))
		return DESCRIPTOR_SOCKET;
	if (S_ISFIFO(status.stx_mode))
		return DESCRIPTOR_PIPE;
	// The kernel's devices.txt: 4 and 5 are consoles, 136 to 143 pseudo-terminals.
	if (S_ISCHR(status.stx_mode) && (status.stx_rdev_major == 4 || status.stx_rdev_major == 5 ||
	                                 status.stx_rdev_major / 8 == 136 / 8))
		return DESCRIPTOR_TERMINAL;
	return 0;
}

static bool read_memory(int tid, uint64_t address, void *ret, size_t size)
{
	const struct iovec local = {ret, size}, remote = {(void *)(uintptr_t)address, size};

	return process_vm_readv(tid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

// The buffers of a call that has a list of them, into an array of MAX_BUFFERS; 0: it cannot be
// read.
static size_t read_list(int tid, const struct partial_call *call,
                        const struct user_regs_struct *user, struct iovec *ret)
{
	uint64_t address = user->rsi;
	size_t n = user->rdx;

	if (call->list == LIST_MESSAGE) {
		struct msghdr message = {0};
		if (!read_memory(tid, user->rsi, &message, sizeof(message)))
			return 0;
		address = (uintptr_t)message.msg_iov;
		n = message.msg_iovlen;
	}
	return n <= MAX_BUFFERS && read_memory(tid, address, ret, n * sizeof(*ret)) ? n : 0;
}

static uint64_t total_of(int tid, const struct partial_call *call,
                         const struct user_regs_struct *user)
{
	struct user_regs_struct copy = *user;
	struct iovec buffers[MAX_BUFFERS];
	uint64_t total = 0;

	if (call->list == LIST_NONE) {
		total = *field(&copy, call->count);
	} else {
		const size_t n = read_list(tid, call, user, buffers);
		for (size_t i = 0; i < n && total < MAX_CALL_BYTES; i++)
			total += buffers[i].iov_len;
	}
	return total < MAX_CALL_BYTES ? total : MAX_CALL_BYTES;
}

bool syscall_rest_find(int tid, const struct user_regs_struct *user, struct syscall_rest *ret)
{
	const struct partial_call *call = find_partial_call(user->orig_rax);
	struct user_regs_struct original = *user;

	if ((long)user->orig_rax < 0 || !call || (long)user->rax <= 0)
		return false;
	if (call->flags &&
	    (*field(&original, call->flags) & call->needed_flags) != call->needed_flags)
		return false;
	if (call->list != LIST_NONE && has_filter(tid))
		return false; // which may not know the call that moves one buffer
	const uint64_t total = total_of(tid, call, user);
	if (user->rax >= total ||
	    !(kind_of_descriptor(tid, *field(&original, call->descriptor)) & call->descriptors))
		return false;
	*ret = (struct syscall_rest){
	    .original = original,
	    .tid = tid,
	    .total = total,
	    .done = user->rax,
	};
	return true;
}

// The buffer in which the list's byte number `done` lies, and what is left of it.
static bool enter_list(struct syscall_rest *rest, const struct partial_call *call,
                       struct user_regs_struct *ret)
{
	struct iovec buffers[MAX_BUFFERS];
	const size_t n = read_list(rest->tid, call, &rest->original, buffers);
	uint64_t before = rest->done;
	size_t i = 0;

	for (; i < n && before >= buffers[i].iov_len; i++)
		before -= buffers[i].iov_len;
	if (i == n)
		return false;
	rest->part = buffers[i].iov_len - before;
	ret->rax = call->part_nr;
	ret->rsi = (uintptr_t)buffers[i].iov_base + before;
	ret->rdx = rest->part;
	ret->r8 = ret->r9 = 0; // sendto, recvfrom: no address
	if (call->flags)
		ret->r10 = rest->original.rdx | call->rest_flags;
	return true;
}

bool syscall_rest_enter(struct syscall_rest *rest, struct user_regs_struct *ret)
{
	const struct partial_call *call = find_partial_call(rest->original.orig_rax);
	struct user_regs_struct user = rest->original;

	user.rax = rest->original.orig_rax;
	user.orig_rax = -1; // not in a call: nothing for the kernel to restart
	user.rip -= SYSCALL_INSTRUCTION_BYTES;
	if (call->list != LIST_NONE) {
		if (!enter_list(rest, call, &user))
			return false;
	} else {
		rest->part = rest->total - rest->done;
		if (call->address)
			*field(&user, call->address) += rest->done;
		*field(&user, call->count) = rest->part;
		if (call->flags)
			*field(&user, call->flags) |= call->rest_flags;
	}
	rest->entered = user;
	*ret = user;
	return true;
}

bool syscall_rest_is_inside(struct syscall_rest *rest, const struct user_regs_struct *user)
{
	const struct user_regs_struct *entered = &rest->entered;

	if (user->rdi != entered->rdi || user->rsi != entered->rsi || user->rdx != entered->rdx ||
	    user->r10 != entered->r10 || user->r8 != entered->r8 || user->rsp != entered->rsp)
		return false;
	if (user->rip == entered->rip && user->rax == entered->rax)
		return true; // it was to begin
	if (user->rip != entered->rip + SYSCALL_INSTRUCTION_BYTES || user->orig_rax != entered->rax)
		return false;
	if ((int64_t)user->rax > 0)
		rest->done += user->rax;
	return true;
}

static bool was_interrupted(int64_t result)
{
	return result == -EINTR || result == -ERESTARTSYS_KERNEL ||
	       result == -ERESTARTNOINTR_KERNEL || result == -ERESTARTNOHAND_KERNEL;
}

bool syscall_rest_continues(struct syscall_rest *rest, int64_t result)
{
	if (result > 0)
		rest->done += result;
	if (rest->done >= rest->total)
		return false;
	if (result > 0 && (uint64_t)result == rest->part)
		return true; // the next buffer
	// Interrupted by a signal that it ignores, it goes on as if there had been none.
	return (result > 0 || was_interrupted(result)) && !awaits_signal(rest->tid);
}

void syscall_rest_leave(const struct syscall_rest *rest, struct user_regs_struct *ret)
{
	*ret = rest->original;
	ret->rax = rest->done;
	ret->orig_rax = -1;
}

bool syscall_mend_resumes(const struct user_regs_struct *user)
{
	const long result = (long)user->rax;

	return (long)user->orig_rax >= 0 &&
	       (result == -ERESTARTSYS_KERNEL || result == -ERESTARTNOINTR_KERNEL ||
	        result == -ERESTARTNOHAND_KERNEL || result == -ERESTART_RESTARTBLOCK_KERNEL);
}

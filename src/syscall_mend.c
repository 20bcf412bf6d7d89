#include "syscall_mend.h"

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "memory.h"

// Of the kernel's linux/errno.h, which is not for programs: restart, unless a handler runs.
enum { ERESTARTNOHAND_KERNEL = 514 };

enum { SYSCALL_INSTRUCTION_BYTES = 2 }; // 0f 05

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
		return true;
	default:
		return false;
	}
}

// The kernel decides about restarting after the stop, by what it finds in rax then
// (arch/x86/kernel/signal.c). With ERESTARTNOHAND in the place of EINTR the call begins again,
// unless a signal with a handler has come meanwhile: then the program sees EINTR, as without us.
bool syscall_mend_eintr(struct user_regs_struct *user)
{
	if ((long)user->orig_rax < 0 || (long)user->rax != -EINTR ||
	    !ends_with_eintr(user->orig_rax))
		return false;
	user->rax = -ERESTARTNOHAND_KERNEL;
	return true;
}

// Calls that move data and return short when they are interrupted, and where they have the
// address and the count of the data. Those with lists of buffers (writev, sendmsg) would need
// memory of the target's to be changed: they are left alone.
static const struct partial_call {
	unsigned long nr;
	size_t address_offset; // in struct user_regs_struct; 0: the kernel keeps the position
	size_t count_offset;
	unsigned int needed_flags; // in the fourth argument
} partial_calls[] = {
    {.nr = SYS_write,
     .address_offset = offsetof(struct user_regs_struct, rsi),
     .count_offset = offsetof(struct user_regs_struct, rdx)},
    {.nr = SYS_sendto,
     .address_offset = offsetof(struct user_regs_struct, rsi),
     .count_offset = offsetof(struct user_regs_struct, rdx)},
    {.nr = SYS_recvfrom,
     .address_offset = offsetof(struct user_regs_struct, rsi),
     .count_offset = offsetof(struct user_regs_struct, rdx),
     .needed_flags = MSG_WAITALL},
    {.nr = SYS_sendfile, .count_offset = offsetof(struct user_regs_struct, r10)},
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

bool syscall_rest_find(const struct user_regs_struct *user, struct syscall_rest *ret)
{
	const struct partial_call *call = find_partial_call(user->orig_rax);
	struct user_regs_struct original = *user;

	if ((long)user->orig_rax < 0 || !call || (long)user->rax <= 0 ||
	    user->rax >= *field(&original, call->count_offset) ||
	    (user->r10 & call->needed_flags) != call->needed_flags)
		return false;
	*ret = (struct syscall_rest){.original = original, .done = user->rax};
	return true;
}

void syscall_rest_enter(const struct syscall_rest *rest, struct user_regs_struct *ret)
{
	const struct partial_call *call = find_partial_call(rest->original.orig_rax);

	*ret = rest->original;
	if (call->address_offset)
		*field(ret, call->address_offset) += rest->done;
	*field(ret, call->count_offset) -= rest->done;
	ret->rax = rest->original.orig_rax;
	ret->orig_rax = -1; // not in a call: nothing for the kernel to restart
	ret->rip -= SYSCALL_INSTRUCTION_BYTES;
}

void syscall_rest_leave(const struct syscall_rest *rest, int64_t result,
                        struct user_regs_struct *ret)
{
	*ret = rest->original;
	ret->rax = rest->done + (result > 0 ? result : 0);
	ret->orig_rax = -1;
}

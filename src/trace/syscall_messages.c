// SPDX-License-Identifier: MIT
#include "syscall_messages.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "descriptor.h"
#include "resident.h"
#include "syscall_rest.h"
#include "syscall_table.h"
#include "thread_signals.h"

static bool read_all(const struct syscall_caller *caller, uint64_t address, void *ret, size_t size)
{
	return resident_read(NULL, caller->tid, address, ret, size);
}

bool syscall_read_buffers(const struct syscall_caller *caller, uint64_t address, uint64_t n,
                          struct iovec *ret)
{
	return n <= SYSCALL_MAX_BUFFERS && read_all(caller, address, ret, n * sizeof(*ret));
}

bool syscall_read_message(const struct syscall_caller *caller, uint64_t address, struct msghdr *ret)
{
	return read_all(caller, address, ret, sizeof(*ret));
}

// Reads the head of a piece of control data.
static bool syscall_read_control(const struct syscall_caller *caller, uint64_t address,
                                 struct cmsghdr *ret)
{
	return read_all(caller, address, ret, sizeof(*ret));
}

bool syscall_message_lost_control(const struct syscall_rest *rest)
{
	struct msghdr message;

	return rest->row->rest->list == LIST_MESSAGE &&
	       syscall_read_message(&rest->caller, syscall_rest_argument(rest, 2), &message) &&
	       (message.msg_flags & MSG_CTRUNC);
}

bool syscall_messages_are_awaited(const struct syscall_rest *rest)
{
	const uint64_t flags = syscall_rest_argument(rest, rest->row->rest->flags);
	const uint64_t timeout = syscall_rest_argument(rest, 5);
	const uint64_t last =
	    syscall_rest_argument(rest, 2) + (rest->done - 1) * rest->row->rest->unit;
	struct timespec left = {.tv_sec = 1};
	struct mmsghdr message;

	// It has waited for its first message only, and the others were taken without waiting,
	// whatever ended them (do_recvmmsg). Only the first one may have been cut within.
	if ((flags & MSG_WAITFORONE) && !(flags & MSG_WAITALL))
		return false;
	if (timeout && !resident_read(NULL, rest->caller.tid, timeout, &left, sizeof(left)))
		return false;
	return (left.tv_sec > 0 || left.tv_nsec > 0) &&
	       resident_read(NULL, rest->caller.tid, last, &message, sizeof(message)) &&
	       !(message.msg_hdr.msg_flags & MSG_OOB);
}

bool syscall_messages_are_whole(const struct syscall_rest *rest)
{
	const uint64_t last =
	    syscall_rest_argument(rest, 2) + (rest->done - 1) * rest->row->rest->unit;
	struct iovec buffers[SYSCALL_MAX_BUFFERS];
	struct mmsghdr message;
	uint64_t total = 0;

	if (!resident_read(NULL, rest->caller.tid, last, &message, sizeof(message)) ||
	    !syscall_read_buffers(&rest->caller, (uintptr_t)message.msg_hdr.msg_iov,
	                          message.msg_hdr.msg_iovlen, buffers))
		return false;
	for (size_t i = 0; i < message.msg_hdr.msg_iovlen; i++)
		total += buffers[i].iov_len;
	return message.msg_len == total;
}

void syscall_messages_take_error(const struct syscall_rest *rest)
{
	const struct syscall_caller *caller = &rest->caller;
	const struct syscall_rest_rule *rule = rest->row->rest;

	if (rule && rule->wish == WISH_MESSAGES_IN &&
	    thread_signals_find_pending(caller->tid) != PENDING_SIGNAL)
		descriptor_take_error(caller->pid, caller->tid,
		                      (int)syscall_rest_argument(rest, rule->descriptor));
}

bool syscall_message_needs_no_control(const struct syscall_rest *rest)
{
	const struct syscall_caller *caller = &rest->caller;
	struct msghdr message;
	struct cmsghdr control;

	if (!syscall_read_message(caller, syscall_rest_argument(rest, 2), &message))
		return false;
	if (rest->row->rest->wish == WISH_RECEIVE)
		return !message.msg_control;
	if (!message.msg_control || message.msg_controllen == 0)
		return true;
	return syscall_read_control(caller, (uintptr_t)message.msg_control, &control) &&
	       control.cmsg_level == SOL_SOCKET && control.cmsg_type == SCM_RIGHTS &&
	       CMSG_ALIGN(control.cmsg_len) >= CMSG_ALIGN(message.msg_controllen);
}

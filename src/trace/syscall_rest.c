// SPDX-License-Identifier: MIT
#include "syscall_rest.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "descriptor.h"
#include "memory.h"
#include "proc.h"
#include "resident.h"
#include "syscall_buffers.h"
#include "syscall_numbers.h"
#include "syscall_table.h"
#include "thread_signals.h"

enum {
	MAX_CALL_BYTES = 0x7ffff000, // MAX_RW_COUNT: no call moves more
	MAX_ENTERED = 100000,        // parts of a rest
};

bool syscall_is_filtered(int tid)
{
	struct proc_status status;

	return !proc_read_status(tid, &status) || status.seccomp != 0;
}

// Returns the argument that the rule names; 0: it names none.
static uint64_t argument(const struct syscall_rest *rest, unsigned int number)
{
	return number ? syscall_argument(&rest->original, rest->caller.compat, number) : 0;
}

// Reads the list of buffers of a call that has one into an array of SYSCALL_MAX_BUFFERS; 0: it
// cannot be read.
static size_t read_list(const struct syscall_rest *rest, struct iovec *ret)
{
	const struct syscall_caller *caller = &rest->caller;
	uint64_t address = argument(rest, 2);
	uint64_t n = argument(rest, 3);

	if (rest->row->rest->list == LIST_MESSAGE) {
		struct msghdr message;
		if (!syscall_read_message(caller, address, &message))
			return 0;
		address = (uintptr_t)message.msg_iov;
		n = message.msg_iovlen;
	}
	return syscall_read_buffers(caller, address, n, ret) ? n : 0;
}

// Returns how much the program has asked for.
static uint64_t asked_for(const struct syscall_rest *rest)
{
	const struct syscall_rest_rule *rule = rest->row->rest;
	struct iovec buffers[SYSCALL_MAX_BUFFERS];
	uint64_t total = 0;

	if (rule->wish == WISH_LEAST)
		return argument(rest, rule->least);
	if (rule->list == LIST_NONE) {
		total = argument(rest, rule->count);
	} else {
		const size_t n = read_list(rest, buffers);
		for (size_t i = 0; i < n && total < MAX_CALL_BYTES; i++)
			total += buffers[i].iov_len;
	}
	return total < MAX_CALL_BYTES ? total : MAX_CALL_BYTES;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

// Notes that its descriptor could not be asked, though the kernel lets others be. Call it at once.
static bool note_unsure(struct syscall_rest *rest)
{
	rest->is_unsure = errno != ENOSYS;
	return rest->is_unsure;
}

static bool ask_socket(const struct syscall_rest *rest, struct socket_facts *ret)
{
	const struct syscall_caller *caller = &rest->caller;

	return descriptor_socket(caller->pid, caller->tid,
	                         (int)argument(rest, rest->row->rest->descriptor), ret);
}

static uint64_t received_from_terminal(struct syscall_rest *rest, uint64_t asked)
{
	const int number = (int)argument(rest, rest->row->rest->descriptor);
	uint64_t least;

	if (!descriptor_terminal(rest->caller.pid, rest->caller.tid, number, &least))
		return note_unsure(rest) ? asked : 0;
	return smaller(least, asked);
}

// True if the message has come with control data for which it had no room: descriptors that a unix
// socket carries end the call (unix_stream_read_generic).
static bool has_lost_control(const struct syscall_rest *rest)
{
	struct msghdr message;

	return rest->row->rest->list == LIST_MESSAGE &&
	       syscall_read_message(&rest->caller, argument(rest, 2), &message) &&
	       (message.msg_flags & MSG_CTRUNC);
}

static uint64_t received_from_socket(struct syscall_rest *rest, uint64_t asked)
{
	const uint64_t flags = argument(rest, rest->row->rest->flags);
	struct socket_facts socket;

	if (flags & (MSG_ERRQUEUE | MSG_OOB | MSG_DONTWAIT))
		return 0;
	if (!ask_socket(rest, &socket))
		return note_unsure(rest) ? asked : 0;
	// A call that receives a message ends with that message; one that looks at a unix socket
	// with what there is (unix_stream_read_generic).
	if (socket.type != SOCK_STREAM || (socket.is_unix && (flags & MSG_PEEK)))
		return 0;
	// It has ended there by itself, or would have now (tcp_recvmsg_locked, manage_oob).
	if ((socket.is_at_mark && !(flags & MSG_PEEK)) ||
	    (socket.is_unix && has_lost_control(rest)))
		return 0;
	rest->is_unsure = socket.tells_senders;
	rest->peeks_on = socket.peeks_on;
	return flags & MSG_WAITALL ? asked : smaller(socket.least, asked);
}

// Returns how much of that a receiving call waits for; 0: what it has is enough. If that is not
// known, all of it, and the call cannot be continued.
static uint64_t received(struct syscall_rest *rest, enum descriptor_kind kind, uint64_t asked)
{
	if (kind & DESCRIPTOR_TERMINAL)
		return received_from_terminal(rest, asked);
	return kind == DESCRIPTOR_SOCKET ? received_from_socket(rest, asked) : asked;
}

// True if it waits for messages, which it does only in part: do_recvmmsg writes back what was left
// of the time, and ends with a message that is urgent. Of a compat call that is not known.
static bool waits_for_messages(const struct syscall_rest *rest)
{
	const uint64_t timeout = argument(rest, 5);
	const uint64_t last = argument(rest, 2) + (rest->done - 1) * rest->row->rest->unit;
	struct timespec left = {.tv_sec = 1};
	struct mmsghdr message;

	if (rest->caller.compat)
		return true;
	if (timeout && !resident_read(NULL, rest->caller.tid, timeout, &left, sizeof(left)))
		return false;
	return (left.tv_sec > 0 || left.tv_nsec > 0) &&
	       resident_read(NULL, rest->caller.tid, last, &message, sizeof(message)) &&
	       !(message.msg_hdr.msg_flags & MSG_OOB);
}

// True if the last message was moved as a whole. Of a stream, it may have been in part; then what
// was sent is counted wrong in memory. Of a compat call that is not known.
static bool has_whole_messages(const struct syscall_rest *rest)
{
	const uint64_t last = argument(rest, 2) + (rest->done - 1) * rest->row->rest->unit;
	struct iovec buffers[SYSCALL_MAX_BUFFERS];
	struct mmsghdr message;
	uint64_t total = 0;

	if (rest->caller.compat ||
	    !resident_read(NULL, rest->caller.tid, last, &message, sizeof(message)) ||
	    !syscall_read_buffers(&rest->caller, (uintptr_t)message.msg_hdr.msg_iov,
	                          message.msg_hdr.msg_iovlen, buffers))
		return false;
	for (size_t i = 0; i < message.msg_hdr.msg_iovlen; i++)
		total += buffers[i].iov_len;
	return message.msg_len == total;
}

// True if the message's rest needs no control data. Descriptors go with the first byte; anything
// else may be meant for each byte (a TLS record's type). A receiver may get some with the rest.
static bool needs_no_control(const struct syscall_rest *rest)
{
	const struct syscall_caller *caller = &rest->caller;
	struct msghdr message;
	struct cmsghdr control;

	if (!syscall_read_message(caller, argument(rest, 2), &message))
		return false;
	if (rest->row->rest->wish == WISH_RECEIVE)
		return !message.msg_control;
	if (!message.msg_control || message.msg_controllen == 0)
		return true;
	return syscall_read_control(caller, (uintptr_t)message.msg_control, &control) &&
	       control.cmsg_level == SOL_SOCKET && control.cmsg_type == SCM_RIGHTS &&
	       CMSG_ALIGN(control.cmsg_len) >= CMSG_ALIGN(message.msg_controllen);
}

// True if other calls may be entered: a call that the program did not make may be unknown to its
// seccomp filter. Compat calls have positions in two halves, and other messages and timeouts.
static bool can_enter_parts(const struct syscall_rest *rest)
{
	const struct syscall_rest_rule *rule = rest->row->rest;

	if (rest->caller.compat && (rule->position != 0 || rule->unit != 0))
		return false;
	if (rule->list != LIST_NONE && rest->is_filtered)
		return false;
	return rule->list != LIST_MESSAGE || needs_no_control(rest);
}

static bool leaves_notes(struct syscall_rest *rest)
{
	struct socket_facts socket;

	if (!rest->is_socket || rest->row->rest->wish != WISH_ALL)
		return false;
	return ask_socket(rest, &socket) ? socket.notes_sending : note_unsure(rest);
}

// True if a part must be sent, not written: on a socket a part that is written must not raise
// SIGPIPE, since after something was moved the whole call would not (sk_stream_error,
// unix_stream_sendmsg). Pipes raise it in any case (pipe_write).
static bool is_sent(const struct syscall_rest *rest)
{
	return rest->is_socket && rest->row->rest->socket_nr != 0 && !rest->is_filtered &&
	       !rest->caller.compat;
}

// Returns the flags that a part has besides the call's own. A filter may look at them: under one,
// the signal that a part may raise is taken back.
static uint32_t added_flags(const struct syscall_rest *rest)
{
	const uint32_t added = rest->row->rest->added;

	return rest->is_filtered && added == MSG_NOSIGNAL ? 0 : added;
}

// True if a part may raise a SIGPIPE that the call as a whole would not.
static bool may_signal(const struct syscall_rest *rest)
{
	const struct syscall_rest_rule *rule = rest->row->rest;

	return rest->is_socket && !is_sent(rest) &&
	       (rule->socket_nr != 0 ||
	        (rule->added == MSG_NOSIGNAL &&
	         !((argument(rest, rule->flags) | added_flags(rest)) & MSG_NOSIGNAL)));
}

// True if the rest of the call, which was cut, can be had exactly.
static bool can_continue(struct syscall_rest *rest, enum descriptor_kind kind)
{
	const struct syscall_rest_rule *rule = rest->row->rest;
	const uint32_t refused = rule->refused & ~(rest->peeks_on ? (uint32_t)MSG_PEEK : 0);

	if (rule->list != LIST_NONE && kind == DESCRIPTOR_PIPE &&
	    descriptor_is_direct(rest->caller.tid, (int)argument(rest, rule->descriptor)))
		return false;
	if (rest->is_unsure || (argument(rest, rule->flags) & refused) || !can_enter_parts(rest))
		return false;
	if (rule->keeps_file_size && kind == DESCRIPTOR_FILE &&
	    !descriptor_may_grow(rest->caller.pid))
		return false;
	// A signal that the rest may raise is taken back, but that is not possible if it stays
	// pending.
	if (may_signal(rest) && thread_signals_block(rest->caller.tid, SIGPIPE))
		return false;
	return !leaves_notes(rest);
}

// Finds the wait for completions, which has ended early, after the count of what was submitted.
static enum syscall_mend find_wait(struct syscall_rest *rest)
{
	const struct syscall_rest_rule *rule = rest->row->rest;

	if (rest->done < argument(rest, rule->count) || argument(rest, rule->least) == 0 ||
	    !(argument(rest, rule->flags) & IORING_ENTER_GETEVENTS))
		return MEND_NOTHING;
	rest->kind = REST_WAIT;
	return MEND_REST;
}

// True if a call that came to less than it asked for did so because it was cut.
static bool was_cut(struct syscall_rest *rest, enum descriptor_kind kind)
{
	const struct syscall_rest_rule *rule = rest->row->rest;

	rest->total = asked_for(rest);
	if (rule->wish == WISH_RECEIVE)
		rest->total = received(rest, kind, rest->total);
	if (rest->done >= rest->total)
		return false;
	return rule->wish != WISH_MESSAGES_IN || waits_for_messages(rest);
}

// True if it has received a part of a message that it was to wait for.
static bool has_part_of_message(const struct syscall_rest *rest)
{
	const struct syscall_rest_rule *rule = rest->row->rest;
	struct socket_facts socket;

	return rule->wish == WISH_MESSAGES_IN && (argument(rest, rule->flags) & MSG_WAITALL) &&
	       !has_whole_messages(rest) &&
	       (!ask_socket(rest, &socket) || socket.type == SOCK_STREAM);
}

// True if the call ended by itself. Pipes and sockets that do not block are asked for room before a
// signal is looked for (sk_stream_wait_memory, sock_alloc_send_pskb, pipe_write); not so in
// splice_from_pipe_next.
static bool ends_by_itself(const struct syscall_rest *rest, enum descriptor_kind kind)
{
	const struct syscall_rest_rule *rule = rest->row->rest;

	return (kind & (DESCRIPTOR_SOCKET | DESCRIPTOR_PIPE)) && !rule->keeps_file_size &&
	       !descriptor_blocks(rest->caller.tid, (int)argument(rest, rule->descriptor));
}

enum syscall_mend syscall_rest_find(const struct syscall_row *row,
                                    const struct syscall_caller *caller,
                                    const struct thread_registers *thread, struct syscall_rest *ret)
{
	const struct syscall_rest_rule *rule = row->rest;
	enum descriptor_kind kind = DESCRIPTOR_OTHER;

	*ret = (struct syscall_rest){.original = *thread,
	                             .row = row,
	                             .caller = *caller,
	                             .done = (uint64_t)syscall_result(thread)};
	if (rule->wish == WISH_COMPLETIONS)
		return find_wait(ret);
	if (has_part_of_message(ret))
		return MEND_LEFT;
	if (rule->list == LIST_NONE && ret->done >= asked_for(ret))
		return MEND_NOTHING;
	if (rule->descriptor) {
		kind = descriptor_kind(caller->tid, (int)argument(ret, rule->descriptor));
		if (!(kind & rule->kinds) || ends_by_itself(ret, kind))
			return MEND_NOTHING;
	}
	ret->is_socket = kind == DESCRIPTOR_SOCKET;
	ret->is_filtered = syscall_is_filtered(caller->tid);
	if (!was_cut(ret, kind))
		return MEND_NOTHING;
	if (rule->wish == WISH_RECEIVE && (argument(ret, rule->flags) & MSG_PEEK) &&
	    !ret->peeks_on && !ret->is_unsure) {
		ret->kind = REST_WHOLE; // it has moved nothing
		return rule->list == LIST_NONE || needs_no_control(ret) ? MEND_REST : MEND_LEFT;
	}
	if (rule->wish == WISH_MESSAGES_OUT && !has_whole_messages(ret))
		return MEND_LEFT;
	return can_continue(ret, kind) ? MEND_REST : MEND_LEFT;
}

void syscall_rest_begin_whole(const struct syscall_row *row, const struct syscall_caller *caller,
                              const struct thread_registers *thread, struct syscall_rest *ret)
{
	*ret = (struct syscall_rest){
	    .original = *thread, .row = row, .caller = *caller, .kind = REST_WHOLE};
}

static void set_argument(const struct syscall_rest *rest, struct thread_registers *thread,
                         unsigned int number, uint64_t value)
{
	if (number)
		syscall_set_argument(thread, rest->caller.compat, number, value);
}

static void send_part(const struct syscall_rest *rest, struct thread_registers *thread)
{
	set_argument(rest, thread, 4, MSG_NOSIGNAL);
	set_argument(rest, thread, 5, 0);
	set_argument(rest, thread, 6, 0);
}

// Returns the number of the call that moves the next part. pread64 and pwrite64 do not know
// position -1, which means the file's own.
static int64_t part_number(const struct syscall_rest *rest)
{
	const struct syscall_rest_rule *rule = rest->row->rest;
	const bool has_own = rule->position && argument(rest, rule->position) == UINT64_MAX;

	if (is_sent(rest))
		return rule->socket_nr;
	if (rest->kind == REST_WAIT || rule->list == LIST_NONE)
		return syscall_number(&rest->original);
	if (has_own && rule->part_nr == SYS_pread64)
		return SYS_read;
	if (has_own && rule->part_nr == SYS_pwrite64)
		return SYS_write;
	return rest->caller.compat ? syscall_to_compat(rule->part_nr) : rule->part_nr;
}

// Enters with the buffer in which byte `done` of the list lies, and what is left of it.
static bool enter_list(struct syscall_rest *rest, struct thread_registers *thread)
{
	const struct syscall_rest_rule *rule = rest->row->rest;
	struct iovec buffers[SYSCALL_MAX_BUFFERS];
	const size_t n = read_list(rest, buffers);
	uint64_t before = rest->done;
	size_t i = 0;

	for (; i < n && before >= buffers[i].iov_len; i++)
		before -= buffers[i].iov_len;
	if (i == n)
		return false;
	rest->part = smaller(buffers[i].iov_len - before, rest->total - rest->done);
	set_argument(rest, thread, 2, (uintptr_t)buffers[i].iov_base + before);
	set_argument(rest, thread, 3, rest->part);
	set_argument(rest, thread, rule->position, argument(rest, rule->position) + rest->done);
	if (rule->list == LIST_MESSAGE) { // sendto, recvfrom: no address
		set_argument(rest, thread, 4, argument(rest, rule->flags) | added_flags(rest));
		set_argument(rest, thread, 5, 0);
		set_argument(rest, thread, 6, 0);
	}
	return true;
}

static void enter_rest(struct syscall_rest *rest, struct thread_registers *thread)
{
	const struct syscall_rest_rule *rule = rest->row->rest;
	const uint64_t unit = rule->unit ? rule->unit : 1;

	rest->part = rest->total - rest->done;
	set_argument(rest, thread, rule->address,
	             argument(rest, rule->address) + rest->done * unit);
	set_argument(rest, thread, rule->position, argument(rest, rule->position) + rest->done);
	set_argument(rest, thread, rule->flags, argument(rest, rule->flags) | added_flags(rest));
	if (rule->wish == WISH_LEAST)
		set_argument(rest, thread, rule->count, argument(rest, rule->count) - rest->done);
	else
		set_argument(rest, thread, rule->count, rest->part);
	set_argument(rest, thread, rule->least, rest->part);
	// The first part has written the address, and its whole length over the size of the room.
	if (rule->sender) {
		set_argument(rest, thread, rule->sender, 0);
		set_argument(rest, thread, rule->sender + 1, 0);
	}
}

// Only waits: what was to be submitted has been.
static void enter_wait(struct syscall_rest *rest, struct thread_registers *thread)
{
	set_argument(rest, thread, rest->row->rest->count, 0);
}

static bool enter(struct syscall_rest *rest, struct thread_registers *thread)
{
	syscall_step_back(thread, part_number(rest));
	if (rest->kind == REST_WAIT)
		enter_wait(rest, thread);
	else if (rest->row->rest->list == LIST_NONE)
		enter_rest(rest, thread);
	else if (!enter_list(rest, thread))
		return false;
	if (is_sent(rest))
		send_part(rest, thread);
	return true;
}

bool syscall_rest_enter(struct syscall_rest *rest, struct thread_registers *ret)
{
	struct thread_registers thread = rest->original;

	if (rest->n_entered++ >= MAX_ENTERED)
		return false;
	if (rest->kind == REST_WHOLE)
		syscall_begin_again(&thread);
	else if (!enter(rest, &thread))
		return false;
	rest->entered = thread;
	*ret = thread;
	return true;
}

bool syscall_rest_is_inside(struct syscall_rest *rest, const struct thread_registers *thread)
{
	const int64_t result = syscall_result(thread);
	bool has_begun;

	if (!syscall_is_inside(thread, &rest->entered, &has_begun))
		return false;
	if (has_begun && result > 0 && rest->kind == REST_MORE)
		rest->done += (uint64_t)result;
	return true;
}

bool syscall_rest_may_be_inside(const struct syscall_rest *rest)
{
	const struct syscall_caller *caller = &rest->caller;
	const struct thread_registers *entered = &rest->entered;
	const uint64_t mask =
	    caller->compat ? UINT32_MAX : UINT64_MAX; // /proc shows whole registers
	struct proc_syscall call;

	if (!proc_read_syscall(-1, caller->pid, caller->tid, &call))
		return !proc_has_ended(caller->pid, caller->tid);
	if (call.running)
		return true;
	if (call.sp != thread_registers_sp(entered) ||
	    call.pc != thread_registers_pc(entered) + syscall_code_bytes())
		return false;
	for (unsigned int i = 0; i < SYSCALL_ARGUMENTS; i++)
		if ((call.args[i] & mask) != syscall_argument(entered, caller->compat, i + 1))
			return false;
	return true;
}

static bool is_call_at(int tid, uint64_t pc)
{
	uint8_t code[SYSCALL_MAX_CODE_BYTES];

	return resident_read(NULL, tid, pc, code, syscall_code_bytes()) && syscall_is_code(code);
}

// When the kernel is to enter a call again, it sets the thread back to the instruction, with the
// call's number in place of the result, and looks for work once more before the program runs
// (arch_do_signal_or_restart, exit_to_user_mode_loop): a stop may find the thread in that state. A
// call for which a filter raises SIGSYS also leaves its number there (syscall_rollback).
bool syscall_has_returned(int tid, const struct thread_registers *thread)
{
	if (!syscall_result_may_be_number(thread))
		return true;
	const uint64_t end = syscall_code_end(thread);
	return is_call_at(tid, end - syscall_code_bytes()) && !is_call_at(tid, end) &&
	       !thread_signals_await(tid, SIGSYS);
}

// True if the call has ended because of a stop; some have an error of their own for that.
static bool was_interrupted(const struct syscall_rest *rest, int64_t result)
{
	return syscall_was_interrupted(result) ||
	       (rest->kind == REST_WHOLE && rest->row->error && result == -rest->row->error);
}

bool syscall_rest_continues(struct syscall_rest *rest, int64_t result)
{
	const bool interrupted = was_interrupted(rest, result);
	const int tid = rest->caller.tid;

	if (rest->kind != REST_MORE)
		return interrupted && thread_signals_find_pending(tid) != PENDING_SIGNAL;
	if (result > 0)
		rest->done += result;
	if (rest->done >= rest->total)
		return false;
	if (result > 0 && (uint64_t)result == rest->part)
		return true; // go on with the next buffer
	// If a signal that it ignores interrupted it, it continues as if there had been none. What
	// is short without any signal has ended by itself.
	if (result > 0)
		return thread_signals_find_pending(tid) == PENDING_IGNORED;
	return interrupted && thread_signals_find_pending(tid) != PENDING_SIGNAL;
}

bool syscall_rest_has_signalled(const struct syscall_rest *rest, int64_t result)
{
	return rest->kind == REST_MORE && result == -EPIPE && may_signal(rest);
}

void syscall_rest_leave(const struct syscall_rest *rest, struct thread_registers *thread)
{
	if (rest->kind == REST_WHOLE) {
		// Nobody will disturb it any more.
		if (syscall_number(thread) >= 0 && was_interrupted(rest, syscall_result(thread)))
			syscall_begin_again(thread);
		return;
	}
	*thread = rest->original;
	syscall_end(thread, (int64_t)rest->done);
}

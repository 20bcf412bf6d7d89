// SPDX-License-Identifier: MIT
#include "syscall_rest.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "descriptor.h"
#include "order.h"
#include "proc.h"
#include "syscall_messages.h"
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

uint64_t syscall_rest_argument(const struct syscall_rest *rest, unsigned int number)
{
	return number ? syscall_argument(&rest->original, number) : 0;
}

static uint64_t argument(const struct syscall_rest *rest, unsigned int number)
{
	return syscall_rest_argument(rest, number);
}

// Reads the list of buffers of a call that has one, SYSCALL_MAX_BUFFERS at most; 0: it cannot be.
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

// Notes that its descriptor could not be asked, though the kernel lets others be. Call it at once.
static bool note_unsure(struct syscall_rest *rest)
{
	rest->is_unsure = errno != ENOSYS;
	return rest->is_unsure;
}

static int descriptor_of(const struct syscall_rest *rest)
{
	return (int)argument(rest, rest->row->rest->descriptor);
}

static bool ask_socket(const struct syscall_rest *rest, struct socket_facts *ret)
{
	return descriptor_socket(rest->caller.pid, rest->caller.tid, descriptor_of(rest), ret);
}

static uint64_t received_from_terminal(struct syscall_rest *rest, uint64_t asked)
{
	const struct syscall_caller *caller = &rest->caller;
	struct terminal_facts terminal;

	if (!descriptor_terminal(caller->pid, caller->tid, descriptor_of(rest), &terminal))
		return note_unsure(rest) ? asked : 0;
	// The rest would wait for its first byte without an end (n_tty_read).
	rest->is_unsure = terminal.has_timeout;
	return order_min(terminal.least, asked);
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
	    (socket.is_unix && syscall_message_lost_control(rest)))
		return 0;
	rest->is_unsure = socket.tells_senders;
	rest->peeks_on = socket.peeks_on;
	return flags & MSG_WAITALL ? asked : order_min(socket.least, asked);
}

// Returns how much of that a receiving call waits for; 0: what it has is enough. If that is not
// known, all of it, and the call cannot be continued.
static uint64_t received(struct syscall_rest *rest, enum descriptor_kind kind, uint64_t asked)
{
	if (kind & DESCRIPTOR_TERMINAL)
		return received_from_terminal(rest, asked);
	return kind == DESCRIPTOR_SOCKET ? received_from_socket(rest, asked) : asked;
}

// True if other calls may be entered: a call that the program did not make may be unknown to its
// seccomp filter.
static bool can_enter_parts(const struct syscall_rest *rest)
{
	const struct syscall_rest_rule *rule = rest->row->rest;

	if (rule->list != LIST_NONE && rest->is_filtered)
		return false;
	return rule->list != LIST_MESSAGE || syscall_message_needs_no_control(rest);
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
	return rest->is_socket && rest->row->rest->socket_nr != 0 && !rest->is_filtered;
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
	    descriptor_is_direct(rest->caller.tid, descriptor_of(rest)))
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

// Has the call left as it is. When do_recvmmsg ends after some messages, it keeps the error that
// ended it for the next call on the socket: one more call, for no message, takes that back.
static enum syscall_mend leave(struct syscall_rest *rest)
{
	if (rest->row->rest->wish != WISH_MESSAGES_IN)
		return MEND_LEFT;
	rest->is_left = true;
	rest->total = rest->done;
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
	return rule->wish != WISH_MESSAGES_IN || syscall_messages_are_awaited(rest);
}

// True if it has received a part of a message that it was to wait for.
static bool has_part_of_message(const struct syscall_rest *rest)
{
	const struct syscall_rest_rule *rule = rest->row->rest;
	struct socket_facts socket;

	return rule->wish == WISH_MESSAGES_IN && (argument(rest, rule->flags) & MSG_WAITALL) &&
	       !syscall_messages_are_whole(rest) &&
	       (!ask_socket(rest, &socket) || socket.type == SOCK_STREAM);
}

// True if the call ended by itself. Pipes and sockets that do not block are asked for room first,
// then for a signal (sk_stream_wait_memory, sock_alloc_send_pskb, pipe_write), but for
// splice_from_pipe_next.
static bool ends_by_itself(const struct syscall_rest *rest, enum descriptor_kind kind)
{
	return (kind & (DESCRIPTOR_SOCKET | DESCRIPTOR_PIPE)) &&
	       !rest->row->rest->keeps_file_size &&
	       !descriptor_blocks(rest->caller.tid, descriptor_of(rest));
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
		return leave(ret);
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
		return rule->list == LIST_NONE || syscall_message_needs_no_control(ret) ? MEND_REST
		                                                                        : MEND_LEFT;
	}
	if (rule->wish == WISH_MESSAGES_OUT && !syscall_messages_are_whole(ret))
		return MEND_LEFT;
	return can_continue(ret, kind) ? MEND_REST : leave(ret);
}

void syscall_rest_begin_whole(const struct syscall_row *row, const struct syscall_caller *caller,
                              const struct thread_registers *thread, struct syscall_rest *ret)
{
	*ret = (struct syscall_rest){
	    .original = *thread, .row = row, .caller = *caller, .kind = REST_WHOLE};
}

static void set_argument(struct thread_registers *thread, unsigned int number, uint64_t value)
{
	if (number)
		syscall_set_argument(thread, number, value);
}

static void send_part(struct thread_registers *thread)
{
	set_argument(thread, 4, MSG_NOSIGNAL);
	set_argument(thread, 5, 0);
	set_argument(thread, 6, 0);
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
	return rule->part_nr;
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
	rest->part = order_min(buffers[i].iov_len - before, rest->total - rest->done);
	set_argument(thread, 2, (uintptr_t)buffers[i].iov_base + before);
	set_argument(thread, 3, rest->part);
	set_argument(thread, rule->position, argument(rest, rule->position) + rest->done);
	if (rule->list == LIST_MESSAGE) { // sendto, recvfrom: no address
		set_argument(thread, 4, argument(rest, rule->flags) | added_flags(rest));
		set_argument(thread, 5, 0);
		set_argument(thread, 6, 0);
	}
	return true;
}

static void enter_rest(struct syscall_rest *rest, struct thread_registers *thread)
{
	const struct syscall_rest_rule *rule = rest->row->rest;
	const uint64_t unit = rule->unit ? rule->unit : 1;

	rest->part = rest->total - rest->done;
	set_argument(thread, rule->address, argument(rest, rule->address) + rest->done * unit);
	set_argument(thread, rule->position, argument(rest, rule->position) + rest->done);
	set_argument(thread, rule->flags, argument(rest, rule->flags) | added_flags(rest));
	if (rule->wish == WISH_LEAST)
		set_argument(thread, rule->count, argument(rest, rule->count) - rest->done);
	else
		set_argument(thread, rule->count, rest->part);
	set_argument(thread, rule->least, rest->part);
	// The first part has written the address, and its whole length over the size of the room.
	if (rule->sender) {
		set_argument(thread, rule->sender, 0);
		set_argument(thread, rule->sender + 1, 0);
	}
}

// Only waits: what was to be submitted has been.
static void enter_wait(struct syscall_rest *rest, struct thread_registers *thread)
{
	set_argument(thread, rest->row->rest->count, 0);
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
		send_part(thread);
	return true;
}

bool syscall_rest_enter(struct syscall_rest *rest, struct thread_registers *ret)
{
	struct thread_registers thread = rest->original;

	const bool is_over = rest->n_entered++ >= MAX_ENTERED;
	if (rest->kind == REST_WHOLE && !is_over) {
		syscall_begin_again(&thread);
	} else if (is_over || !enter(rest, &thread)) {
		rest->is_left |= rest->kind != REST_WHOLE;
		return false;
	}
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
	struct proc_syscall call;

	if (!proc_read_syscall(-1, caller->pid, caller->tid, &call))
		return !proc_has_ended(caller->pid, caller->tid);
	if (call.running)
		return true;
	if (call.sp != thread_registers_sp(entered) ||
	    call.pc != thread_registers_pc(entered) + syscall_code_bytes())
		return false;
	for (unsigned int i = 0; i < SYSCALL_ARGUMENTS; i++)
		if (call.args[i] != syscall_argument(entered, i + 1))
			return false;
	return true;
}

// True if the part differs from the program's own call in what filters look at.
static bool is_other_call(const struct syscall_rest *rest)
{
	return part_number(rest) != syscall_number(&rest->original) ||
	       (added_flags(rest) & MSG_NOSIGNAL);
}

bool syscall_rest_empty(struct syscall_rest *rest, struct thread_registers *ret)
{
	const struct syscall_rest_rule *rule = rest->row->rest;

	if (rest->kind != REST_MORE || !is_other_call(rest) ||
	    !syscall_is_filtered(rest->caller.tid))
		return false;
	rest->is_filtered = true;
	rest->is_emptied = true;
	*ret = rest->original;
	syscall_set(ret, syscall_number(ret), -ENOSYS);
	// Without a message it ends with EFAULT.
	set_argument(ret,
	             rule->list == LIST_NONE      ? rule->count
	             : rule->list == LIST_MESSAGE ? 2
	                                          : 3,
	             0);
	return true;
}

// True if the call has ended because of a stop; some have an error of their own for that.
static bool was_interrupted(const struct syscall_rest *rest, int64_t result)
{
	return syscall_was_interrupted(result) ||
	       (rest->kind == REST_WHOLE && rest->row->error && result == -rest->row->error);
}

// Ends a rest that may have ended by itself: going on, it could wait for what never comes. But
// SIGCONT wakes whoever is traced (ptrace_trap_notify), and then it is as short as without us.
static enum syscall_rest_next end_early(struct syscall_rest *rest, bool is_sure)
{
	rest->is_left = !is_sure;
	return REST_ENDS;
}

// Judges a part that came to less than it should though no signal is to be seen: by itself, or
// because of SIGCONT or a signal that another thread has taken since.
static enum syscall_rest_next judge_short(struct syscall_rest *rest)
{
	const struct syscall_rest_rule *rule = rest->row->rest;
	const bool receives = rule->wish == WISH_RECEIVE;
	struct socket_facts socket;

	if (!rest->is_socket)
		return REST_GOES_ON;
	if (!ask_socket(rest, &socket))
		return end_early(rest, false);
	if (socket.has_timeout)
		return end_early(rest, true); // which has probably passed
	if (receives && (socket.is_unix || (argument(rest, rule->flags) & MSG_PEEK)))
		return end_early(rest, false);
	return receives && socket.is_at_mark ? REST_ENDS : REST_GOES_ON;
}

// Judges a call that has moved some of its messages in a part.
static enum syscall_rest_next judge_messages(struct syscall_rest *rest)
{
	const bool is_in = rest->row->rest->wish == WISH_MESSAGES_IN;

	rest->is_left = is_in ? has_part_of_message(rest) : !syscall_messages_are_whole(rest);
	return rest->is_left || (is_in && !syscall_messages_are_awaited(rest)) ? REST_ENDS
	                                                                       : REST_GOES_ON;
}

// Judges a part that has moved something, but less than it should. If a signal that it ignores has
// interrupted it, it goes on as if there had been none.
static enum syscall_rest_next judge_part(struct syscall_rest *rest,
                                         enum thread_signals_pending pending)
{
	const enum syscall_wish wish = rest->row->rest->wish;

	if (wish == WISH_MESSAGES_IN || wish == WISH_MESSAGES_OUT)
		return judge_messages(rest);
	return pending == PENDING_IGNORED ? REST_GOES_ON : judge_short(rest);
}

// True if the rest can go on under a filter that it was not under when it began.
static bool can_go_on_filtered(const struct syscall_rest *rest)
{
	return can_enter_parts(rest) &&
	       !(may_signal(rest) && thread_signals_block(rest->caller.tid, SIGPIPE));
}

enum syscall_rest_next syscall_rest_next(struct syscall_rest *rest, int64_t result)
{
	const bool interrupted = was_interrupted(rest, result);
	const int tid = rest->caller.tid;

	if (rest->is_emptied) {
		rest->is_emptied = false;
		rest->is_left = !can_go_on_filtered(rest);
		return rest->is_left ? REST_ENDS : REST_GOES_ON;
	}
	if (result > 0 && rest->kind == REST_MORE)
		rest->done += (uint64_t)result;
	if (rest->kind == REST_MORE && rest->done >= rest->total)
		return REST_ENDS;
	const bool is_part = result > 0 && rest->kind == REST_MORE;
	if (is_part && (uint64_t)result == rest->part)
		return REST_GOES_ON; // with the next buffer
	// A look at what there is (MSG_PEEK) shows too little.
	const bool is_look =
	    result > 0 && rest->kind == REST_WHOLE && (uint64_t)result < rest->total;
	if (!is_part && !is_look && !interrupted)
		return REST_ENDS;
	const enum thread_signals_pending pending = thread_signals_find_pending(tid);
	if (pending == PENDING_SIGNAL)
		return REST_ENDS;
	if (is_part)
		return judge_part(rest, pending);
	if (!is_look || pending == PENDING_IGNORED)
		return REST_GOES_ON;
	rest->done = (uint64_t)result;
	rest->kind = REST_MORE; // its result stands
	return end_early(rest, false);
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

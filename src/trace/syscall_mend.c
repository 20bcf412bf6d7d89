// SPDX-License-Identifier: MIT
#include "syscall_mend.h"

#include <errno.h>
#include <signal.h>

#include "descriptor.h"
#include "resident.h"
#include "syscall_table.h"
#include "thread_signals.h"

int syscall_mend_number(const struct syscall_caller *caller, const struct thread_registers *thread)
{
	return caller->compat ? -1 : (int)syscall_number(thread);
}

static const struct syscall_row *find_row(const struct thread_registers *thread)
{
	uint64_t arguments[SYSCALL_ARGUMENTS];

	for (unsigned int i = 0; i < SYSCALL_ARGUMENTS; i++)
		arguments[i] = syscall_argument(thread, i + 1);
	return syscall_table_find(syscall_number(thread), arguments);
}

static bool can_enter_again(const struct syscall_row *row, const struct syscall_caller *caller,
                            struct thread_registers *thread)
{
	if (!row || (row->fate != SYSCALL_WHOLE && row->fate != SYSCALL_CONTINUED))
		return false;
	return !row->kinds ||
	       (descriptor_kind(caller->tid, (int)syscall_argument(thread, 1)) & row->kinds);
}

// Mends a call that has ended with the error by which it tells of an interruption.
static enum syscall_mend mend_error(const struct syscall_row *row,
                                    const struct syscall_caller *caller,
                                    struct thread_registers *thread, struct syscall_rest *ret)
{
	if (!can_enter_again(row, caller, thread))
		return MEND_LEFT;
	if (row->undisturbed) {
		syscall_rest_begin_whole(row, caller, thread, ret);
		return MEND_REST;
	}
	syscall_begin_again(thread);
	return MEND_AGAIN;
}

static bool is_call_at(int tid, uint64_t pc)
{
	uint8_t code[SYSCALL_MAX_CODE_BYTES];

	return resident_read(NULL, tid, pc, code, syscall_code_bytes()) && syscall_is_code(code);
}

// True if the result, which is positive, is what the call came to, and not the number of a call
// that is to be entered again, or was refused. When the kernel is to enter a call again, it sets
// the thread back to the instruction, with the call's number in place of the result, and looks for
// work once more before the program runs (arch_do_signal_or_restart, exit_to_user_mode_loop): a
// stop may find the thread in that state. A call for which a filter raises SIGSYS also leaves its
// number there (syscall_rollback).
static bool has_returned(int tid, const struct thread_registers *thread)
{
	if (!syscall_result_may_be_number(thread))
		return true;
	const uint64_t end = syscall_code_end(thread);
	return is_call_at(tid, end - syscall_code_bytes()) && !is_call_at(tid, end) &&
	       !thread_signals_await(tid, SIGSYS);
}

// Mends a call that has ended with a count.
static enum syscall_mend mend_count(const struct syscall_row *row,
                                    const struct syscall_caller *caller,
                                    const struct thread_registers *thread, struct syscall_rest *ret)
{
	if (!row || !row->rest)
		return MEND_NOTHING;
	const enum syscall_mend found = syscall_rest_find(row, caller, thread, ret);
	return found == MEND_NOTHING || has_returned(caller->tid, thread) ? found : MEND_NOTHING;
}

enum syscall_mend syscall_mend(const struct syscall_caller *caller, struct thread_registers *thread,
                               struct syscall_rest *ret)
{
	const int64_t result = syscall_result(thread);

	if (syscall_number(thread) < 0 || result == 0)
		return MEND_NOTHING;
	if (syscall_needs_restart_syscall(thread) && syscall_is_filtered(caller->tid)) {
		syscall_begin_again(thread);
		return MEND_AGAIN;
	}
	if (caller->compat) // its number means another call in the table
		return result == -EINTR ? MEND_LEFT : MEND_NOTHING;
	const struct syscall_row *row = find_row(thread);
	if (result > 0)
		return mend_count(row, caller, thread, ret);
	return result == -(row && row->error ? row->error : EINTR)
	           ? mend_error(row, caller, thread, ret)
	           : MEND_NOTHING;
}

bool syscall_mend_at_once(const struct syscall_caller *caller, struct thread_registers *thread)
{
	struct syscall_rest unused;

	if (syscall_result(thread) >= 0)
		return false;
	const enum syscall_mend mend = syscall_mend(caller, thread, &unused);
	if (mend == MEND_REST)
		syscall_begin_again(thread);
	return mend == MEND_AGAIN || mend == MEND_REST;
}

bool syscall_mend_resumes(const struct thread_registers *thread)
{
	const int64_t result = syscall_result(thread);

	return syscall_number(thread) >= 0 && result != -EINTR && syscall_was_interrupted(result);
}

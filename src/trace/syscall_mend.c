// SPDX-License-Identifier: MIT
#include "syscall_mend.h"

#include <errno.h>

#include "descriptor.h"
#include "syscall_table.h"

int syscall_mend_number(const struct syscall_caller *caller, const struct thread_registers *thread)
{
	const int64_t number = syscall_number(thread);

	return caller->compat ? syscall_from_compat((int32_t)number) : (int)number;
}

static const struct syscall_row *find_row(const struct syscall_caller *caller,
                                          const struct thread_registers *thread)
{
	uint64_t arguments[SYSCALL_ARGUMENTS];

	for (unsigned int i = 0; i < SYSCALL_ARGUMENTS; i++)
		arguments[i] = syscall_argument(thread, caller->compat, i + 1);
	return syscall_table_find(syscall_mend_number(caller, thread), arguments);
}

static bool can_enter_again(const struct syscall_row *row, const struct syscall_caller *caller,
                            struct thread_registers *thread)
{
	if (!row || (row->fate != SYSCALL_WHOLE && row->fate != SYSCALL_CONTINUED))
		return false;
	return !row->kinds ||
	       (descriptor_kind(caller->tid, (int)syscall_argument(thread, caller->compat, 1)) &
	        row->kinds);
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

// Mends a call that has ended with a count.
static enum syscall_mend mend_count(const struct syscall_row *row,
                                    const struct syscall_caller *caller,
                                    const struct thread_registers *thread, struct syscall_rest *ret)
{
	if (!row || !row->rest)
		return MEND_NOTHING;
	const enum syscall_mend found = syscall_rest_find(row, caller, thread, ret);
	return found == MEND_NOTHING || syscall_has_returned(caller->tid, thread) ? found
	                                                                          : MEND_NOTHING;
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
	const struct syscall_row *row = find_row(caller, thread);
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

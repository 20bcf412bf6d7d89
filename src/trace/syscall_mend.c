// SPDX-License-Identifier: MIT
#include "syscall_mend.h"

#include <errno.h>

#include "descriptor.h"
#include "syscall_table.h"

int syscall_mend_number(const struct syscall_caller *caller, const struct user_regs_struct *user)
{
	const int64_t nr = (int64_t)user->orig_rax;

	return caller->i386 ? syscall_table_from_i386((int32_t)nr) : (int)nr;
}

static const struct syscall_row *find_row(const struct syscall_caller *caller,
                                          const struct user_regs_struct *user)
{
	struct user_regs_struct copy = *user;
	uint64_t arguments[6];

	for (unsigned int i = 0; i < 6; i++)
		arguments[i] = *syscall_argument(&copy, caller->i386, i + 1);
	return syscall_table_find(syscall_mend_number(caller, user), arguments);
}

static bool can_enter_again(const struct syscall_row *row, const struct syscall_caller *caller,
                            struct user_regs_struct *user)
{
	if (!row || (row->fate != SYSCALL_WHOLE && row->fate != SYSCALL_CONTINUED))
		return false;
	return !row->kinds ||
	       (descriptor_kind(caller->tid, (int)*syscall_argument(user, caller->i386, 1)) &
	        row->kinds);
}

// The call has ended with the error by which it tells of an interruption.
static enum syscall_mend mend_error(const struct syscall_row *row,
                                    const struct syscall_caller *caller,
                                    struct user_regs_struct *user, struct syscall_rest *ret)
{
	if (!can_enter_again(row, caller, user))
		return MEND_LEFT;
	if (row->undisturbed) {
		syscall_rest_begin_whole(row, caller, user, ret);
		return MEND_REST;
	}
	user->rax = -ERESTARTNOHAND_KERNEL;
	return MEND_AGAIN;
}

// The call has ended with a count.
static enum syscall_mend mend_count(const struct syscall_row *row,
                                    const struct syscall_caller *caller,
                                    const struct user_regs_struct *user, struct syscall_rest *ret)
{
	if (!row || !row->rest)
		return MEND_NOTHING;
	const enum syscall_mend found = syscall_rest_find(row, caller, user, ret);
	return found == MEND_NOTHING || syscall_has_returned(caller->tid, user) ? found
	                                                                        : MEND_NOTHING;
}

enum syscall_mend syscall_mend(const struct syscall_caller *caller, struct user_regs_struct *user,
                               struct syscall_rest *ret)
{
	const int64_t result = (int64_t)user->rax;

	if ((int64_t)user->orig_rax < 0 || result == 0)
		return MEND_NOTHING;
	if (result == -ERESTART_RESTARTBLOCK_KERNEL && syscall_is_filtered(caller->tid)) {
		user->rax = -ERESTARTNOHAND_KERNEL;
		return MEND_AGAIN;
	}
	const struct syscall_row *row = find_row(caller, user);
	if (result > 0)
		return mend_count(row, caller, user, ret);
	return result == -(row && row->error ? row->error : EINTR)
	           ? mend_error(row, caller, user, ret)
	           : MEND_NOTHING;
}

bool syscall_mend_at_once(const struct syscall_caller *caller, struct user_regs_struct *user)
{
	struct syscall_rest unused;

	if ((int64_t)user->rax >= 0)
		return false;
	const enum syscall_mend mend = syscall_mend(caller, user, &unused);
	if (mend == MEND_REST)
		user->rax = -ERESTARTNOHAND_KERNEL;
	return mend == MEND_AGAIN || mend == MEND_REST;
}

bool syscall_mend_resumes(const struct user_regs_struct *user)
{
	return (int64_t)user->orig_rax >= 0 && (int64_t)user->rax != -EINTR &&
	       syscall_was_interrupted((int64_t)user->rax);
}

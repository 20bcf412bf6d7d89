// syscall_mend: undoing what a stop does to the system call that it interrupts. Registers only:
// whoever stopped the thread writes them back.
//
// Two things happen to a call that is interrupted by a stop alone (measured, 64 calls tried): some
// end with EINTR, and some that have moved a part of their data end with that part's count. The
// program would have seen neither.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

// If the thread's call is about to end with EINTR because of the stop alone, changes its registers
// so that the kernel restarts it; false: nothing to mend.
bool syscall_mend_eintr(struct user_regs_struct *user);

// The rest of a call that was cut short.
struct syscall_rest {
	struct user_regs_struct original; // as the program would have found them
	uint64_t done;                    // bytes moved by the first part
};

// Was the thread's call cut short? Then *ret describes it. A call that returned less for a reason
// of its own (a descriptor that does not block, a full disk, the end of the file) returns that
// reason at once when it is continued.
bool syscall_rest_find(const struct user_regs_struct *user, struct syscall_rest *ret);

// The registers with which the thread executes the rest of the call as a call of its own.
void syscall_rest_enter(const struct syscall_rest *rest, struct user_regs_struct *ret);

// The registers after it, given what it returned: those of one call that did it all.
void syscall_rest_leave(const struct syscall_rest *rest, int64_t result,
                        struct user_regs_struct *ret);

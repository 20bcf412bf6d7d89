// syscall_mend: undoing what a stop does to the system call that it interrupts. Whoever stopped the
// thread writes the registers back; its memory is never changed.
//
// Three things happen to a call that is interrupted by a stop alone (measured, 64 calls tried):
// some end with EINTR, some that have moved a part of their data end with that part's count, and
// some are restarted by way of restart_syscall(2), which a seccomp filter may answer with death.
// The program would have seen none of these.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

// Does the thread's process ignore the signal? Sent to a thread that is traced, it interrupts calls
// all the same.
bool syscall_mend_ignores(int tid, int signal);

// If the thread's call is about to end with EINTR because of the stop alone, or to be restarted in
// a way that its seccomp filter may not know, changes its registers so that the kernel restarts it
// as it was; false: nothing to mend.
bool syscall_mend_restart(int tid, struct user_regs_struct *user);

// Is the thread in a system call that the kernel begins again after the stop?
bool syscall_mend_resumes(const struct user_regs_struct *user);

// The rest of a call that was cut short.
struct syscall_rest {
	struct user_regs_struct original; // as the program would have found them
	int tid;
	uint64_t total;                  // bytes that the program asked for
	uint64_t done;                   // bytes moved by now
	uint64_t part;                   // bytes that the call which was last entered is to move
	struct user_regs_struct entered; // with which that call began
};

// Was the thread's call cut short? Then *ret describes it. A call that returned less for a reason
// of its own (a descriptor that does not block, the end of the file) returns that reason at once
// when it is continued; where it would not, no rest is found.
bool syscall_rest_find(int tid, const struct user_regs_struct *user, struct syscall_rest *ret);

// The registers with which the thread executes the next part of the rest as a call of its own: all
// of it, or one buffer of a list of buffers. False: it cannot be told.
bool syscall_rest_enter(struct syscall_rest *rest, struct user_regs_struct *ret);

// That call has returned `result`. Is there more to be done?
bool syscall_rest_continues(struct syscall_rest *rest, int64_t result);

// Was the thread interrupted in the call that was last entered, or just before? Then counts what it
// has moved.
bool syscall_rest_is_inside(struct syscall_rest *rest, const struct user_regs_struct *user);

// The registers after it all: those of one call that did it.
void syscall_rest_leave(const struct syscall_rest *rest, struct user_regs_struct *ret);

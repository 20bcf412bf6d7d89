// SPDX-License-Identifier: MIT
// syscall_mend: undoes what a stop does to the system call that it interrupts, as the table
// (syscall_table.h) says. The caller, which stopped the thread, writes the registers back; its
// memory is never changed.
//
// Three things happen to a call that is interrupted by nothing but a stop: some calls end with an
// error, some that have moved a part of their data end with that part's count, and some are
// restarted through restart_syscall(2), for which a seccomp filter may kill. The program would have
// seen none of these.
#pragma once

#include <stdbool.h>

#include "syscall_rest.h"

// Says what is to be done about the thread's call, which was interrupted by a stop that the program
// must not notice. MEND_AGAIN: the registers are changed so that the kernel enters the call again.
// MEND_REST: *ret describes what is to be executed. A call that returned less for a reason of its
// own (a descriptor that does not block, the end of the file) returns for that reason at once when
// it is continued; if it would not, it is left alone.
enum syscall_mend syscall_mend(const struct syscall_caller *caller, struct thread_registers *thread,
                               struct syscall_rest *ret);

// Does the same if nobody can stay for the rest: a call that ended with an error is entered again.
// A signal handler may call it.
bool syscall_mend_at_once(const struct syscall_caller *caller, struct thread_registers *thread);

// True if the thread is in a system call that the kernel begins again after the stop.
bool syscall_mend_resumes(const struct thread_registers *thread);

// Returns the table's number for the call; -1: it is a compat call.
int syscall_mend_number(const struct syscall_caller *caller, const struct thread_registers *thread);

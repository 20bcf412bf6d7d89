// SPDX-License-Identifier: MIT
// spared_calls: knows the system calls in which a sleeping thread is not stopped, because the
// program would notice. If only a stop could show more of the stack, the stack is marked instead.
#pragma once

#include <stdbool.h>

struct proc_syscall;
struct resident;

// True if a stop would do something to the call of a sleeping thread that cannot be undone
// (SYSCALL_LEFT of syscall_table.h), or not completely: a timeout would begin again, or the rest of
// a transfer would become a call of its own, before which others may come; or if others see who
// waits in the call, or hand it what it waits for, while it does. Judges by what is seen of the
// call from outside: its number, its arguments, and what its descriptor is. A compat call, which
// has other numbers, is always spared. `resident` may be NULL.
bool spared_calls_has(int pid, int tid, struct resident *resident, const struct proc_syscall *call);

// True if the sleeping thread waits for another program's answer: a seccomp supervisor's
// (SECCOMP_RET_USER_NOTIF), a file system's (FUSE; request_wait_answer in the kernel's
// fs/fuse/dev.c), or a page of userfaultfd(2) (handle_userfault in fs/userfaultfd.c; it may be in
// no call then). A stop would withdraw the question, which is then asked again: it is answered
// twice, or never, if the answer takes longer than a tick. If the kernel does not tell, this is
// true for every thread under a seccomp filter.
bool spared_calls_asks_program(int pid, int tid);

// True if the sleeping thread waits for room for data that it writes: the kernel's function tells
// so even if the call itself is hidden. After a stop the call would have to be continued, for as
// long as that takes.
bool spared_calls_gives(int pid, int tid);

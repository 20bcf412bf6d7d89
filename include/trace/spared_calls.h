// spared_calls: system calls in which a sleeping thread is not stopped, because it would not bear
// that unseen: its stack is marked instead, where only a stop could show more.
#pragma once

#include <stdbool.h>

struct proc_syscall;

// True if the stop would do to the call of a sleeping thread what cannot be undone (SYSCALL_LEFT of
// syscall_table.h), or not wholly: a timeout would begin anew, or what is left of a transfer would
// become a call of its own, before which others may come. By what is seen of the call from outside:
// its number and arguments, and what its descriptor is. Of int $0x80, whose numbers are others, a
// call that syscall_table_from_i386 does not know is one.
bool spared_calls_has(int pid, int tid, const struct proc_syscall *call);

// Does the thread, which sleeps, wait for a seccomp supervisor's answer (SECCOMP_RET_USER_NOTIF)?
// The stop would withdraw the question, which is then asked again, and answered twice. Where the
// kernel does not tell, every thread under a filter may.
bool spared_calls_asks_supervisor(int pid, int tid);

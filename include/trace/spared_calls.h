// spared_calls: system calls in which a sleeping thread is not stopped, because it would not bear
// that unseen: its stack is marked instead, where only a stop could show more.
#pragma once

#include <stdbool.h>

struct proc_syscall;

// Would the stop do to the call what cannot be undone (SYSCALL_LEFT of syscall_table.h), or not
// wholly? By what is seen of the call from outside: its number and arguments.
bool spared_calls_has(const struct proc_syscall *call);

// Does the thread, which sleeps, wait for a seccomp supervisor's answer (SECCOMP_RET_USER_NOTIF)?
// The stop would withdraw the question, which is then asked again, and answered twice. Where the
// kernel does not tell, every thread under a filter may.
bool spared_calls_asks_supervisor(int pid, int tid);

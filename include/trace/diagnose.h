// SPDX-License-Identifier: MIT
// diagnose: why a process cannot be sampled, in words that say what to do.
#pragma once

#include <stdbool.h>

struct error;

// Finds out whether the process that `pid` names (its pid, or the tid of one of its threads) can be
// sampled. NULL if so, and *ret_pid is its process id.
struct error *diagnose_target(int pid, int *ret_pid);

// The pid of another process that traces this one, and not just for the moment of another
// profiler's sample; 0: none. If there is one, threads can be copied while they sleep, but not
// stopped.
int diagnose_tracer(int pid);

// One line that tells the user what that means; the caller frees it.
char *diagnose_tracer_text(int pid, int tracer);

// The error for a process that has ended meanwhile.
struct error *diagnose_gone(int pid);

// A stop or a copy was denied (EPERM): says why.
struct error *diagnose_denied(int pid);

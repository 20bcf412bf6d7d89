// SPDX-License-Identifier: MIT
// diagnose: why a process cannot be sampled, in words that say what to do.
#pragma once

#include <stdbool.h>

struct error;

// Finds out whether the process that `pid` names (its pid, or the tid of one of its threads) can be
// sampled. NULL if so, and *ret_pid is its process id.
struct error *diagnose_target(int pid, int *ret_pid);

// Is the process traced by another one, and not just for the moment of a sample by another
// profiler? Then its threads can be copied while they sleep, but not stopped; 0: no, else the
// tracer's pid.
int diagnose_tracer(int pid);

// What that means to the user, in one line; the caller frees.
char *diagnose_tracer_text(int pid, int tracer);

// The process has ended meanwhile.
struct error *diagnose_gone(int pid);

// A stop or a copy was denied (EPERM): says why.
struct error *diagnose_denied(int pid);

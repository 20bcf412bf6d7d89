// SPDX-License-Identifier: MIT
// diagnose: says why a process cannot be sampled, and what to do about it.
#pragma once

struct error;

// Finds out whether the process that `pid` names (its pid, or the tid of one of its threads) can be
// sampled. Returns NULL if so, and sets *ret_pid to its process id.
struct error *diagnose_target(int pid, int *ret_pid);

// Returns the pid of another process that traces this one, and not just for the moment of another
// profiler's sample; 0: none. If there is one, threads can be copied while they sleep, but not
// stopped.
int diagnose_tracer(int pid);

// Returns one line that tells the user what that means; the caller frees it.
char *diagnose_tracer_text(int pid, int tracer);

// Returns what to do about a tracer with that name, such as "end that one".
const char *diagnose_tracer_advice(const char *tracer);

// Returns the error for a process that has ended meanwhile.
struct error *diagnose_gone(int pid);

// Says why a stop or a copy was denied (EPERM).
struct error *diagnose_denied(int pid);

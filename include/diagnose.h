// diagnose: why a process cannot be sampled, in words that say what to do.
#pragma once

#include <stdbool.h>

struct error;

// Can the process that `pid` names (its pid, or the tid of one of its threads) be sampled? NULL if
// so, and *ret_pid is its process id. `is_ours`: the profiler itself traces it.
struct error *diagnose_target(int pid, bool is_ours, int *ret_pid);

// The process has ended meanwhile.
struct error *diagnose_gone(int pid);

// A stop or a copy was denied (EPERM): says why.
struct error *diagnose_denied(int pid);

// SPDX-License-Identifier: MIT
// woken: finds sleepers that were woken, and still wait for a CPU. Their stacks are those of their
// sleep, and their run counts do not tell; but they do not sleep.
#pragma once

#include <stdbool.h>

enum { WOKEN_MAX_LOOKS = 256 }; // at a time

struct machine_load;
struct target;
struct target_thread;

// True if a look at each sleeper is worth it; n_others is machine_load_others. So it is only if
// threads wait for CPUs, and there are at most WOKEN_MAX_LOOKS sleepers.
bool woken_is_worth_looks(const struct machine_load *load, const struct target *target,
                          long n_others);

// True if the sleeper is one; false if it was stopped, and is only on its way back to sleep.
bool woken_is_ready(const struct target *target, struct target_thread *thread);

// True if a sleeper (thread->look_later) may be one. n_running of the other threads were just seen
// to run or be ready; n_others is machine_load_others before that. If those are all of the
// machine's ready threads, no sleeper is one. As threads come and go meanwhile, it counts several
// times.
bool woken_may_be_ready(const struct machine_load *load, const struct target *target, long n_others,
                        long n_running);

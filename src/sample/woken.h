// SPDX-License-Identifier: MIT
// woken: sleepers that were woken, and wait for a CPU still. Their stacks are those of their sleep,
// and their run counts do not tell; but they do not sleep.
#pragma once

#include <stdbool.h>

enum { WOKEN_MAX_LOOKS = 256 }; // at a time

struct machine_load;
struct target;
struct target_thread;

// True if it is worth a look at each sleeper, n_others being machine_load_others: only where
// threads wait for CPUs, and while there are no more of them than WOKEN_MAX_LOOKS.
bool woken_is_worth_looks(const struct machine_load *load, const struct target *target,
                          long n_others);

// True if the sleeper is one; false of one that was stopped, and is on its way back to sleep
// because of that.
bool woken_is_ready(const struct target *target, const struct target_thread *thread);

// Could any sleeper (thread->look_later) be one, when n_running of the others run or are ready, as
// looked at just now, n_others being machine_load_others before that? If those are all of the
// machine's ready threads, none is. They come and go while they are counted, so it is tried again.
bool woken_may_be_ready(const struct machine_load *load, const struct target *target, long n_others,
                        long n_running);

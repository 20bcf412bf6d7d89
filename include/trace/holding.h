// SPDX-License-Identifier: MIT
// holding: tells the supervisor that the worker copies a thread that it holds, and when it means to
// end.
//
// A copy takes microseconds, or milliseconds if the stack is deep. What is read is the target's,
// and hostile: if it made a loop there endless, the thread would stand still for ever. So the
// supervisor looks (stuck_worker.h) whether the worker is at the same copy for too long.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Call it before the worker is forked. Without memory for it, the supervisor sees nothing.
void holding_share(void);

// Call these in the worker around what is done while a thread is held.
void holding_begin(void);
void holding_end(void);

// Says in the worker that it means to have sampled for duration_ns from now on; 0: that is not
// known.
void holding_expect_end(int64_t duration_ns);

// Says in the worker that it does not sample any more: a wait is not for the target from now on.
void holding_note_over(void);

// Returns whether it has said so.
bool holding_is_over(void);

// In the supervisor: returns when that should be (CLOCK_MONOTONIC); 0: unknown.
int64_t holding_due_ns(void);

// In the supervisor: returns a number that each hold has for itself; 0: nobody is held.
unsigned int holding_now(void);

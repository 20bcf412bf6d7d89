// SPDX-License-Identifier: MIT
// hold_limit: no fault of ours holds a thread for ever.
//
// A held thread is copied in microseconds, or milliseconds where its stack is deep. A loop in that
// which does not end, for what it reads is the target's and hostile, would hold the thread for as
// long as the sampler lives, and at a realtime priority take a CPU as well. Such a sampler kills
// itself: the kernel lets go of all threads then, and its supervisor sees to calls in their rest
// (tracee_rescue.h) and says how it ended.
#pragma once

#include <stdint.h>

// Begins to watch over this thread, the sampler: it may use as much CPU time on one held thread,
// and a fifth more. Uses SIGXCPU, and a timer that fires once in each fifth of that CPU time.
void hold_limit_begin(int64_t max_cpu_ns);
void hold_limit_end(void);

// Call these around what is done while a thread is held. They cost nothing.
void hold_limit_enter(void);
void hold_limit_leave(void);

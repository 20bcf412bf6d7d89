// SPDX-License-Identifier: MIT
// hold_limit: keeps a fault of ours from holding a thread for ever.
//
// A held thread is copied in microseconds, or milliseconds if its stack is deep. What is read is
// the target's, and hostile: if it made a loop there endless, the thread would be held for as long
// as the sampler lives, and a sampler at a realtime priority would take a CPU as well. So such a
// sampler kills itself: the kernel then lets go of all threads, and its supervisor sees to calls in
// their rest (tracee_rescue.h) and says how it ended. What a recording or a window's file holds by
// then stays; all other samples are lost, because no code of a sampler with such a fault is trusted
// to write them.
#pragma once

#include <stdint.h>

// Begins to watch over this thread, the sampler: it may spend that much CPU time on one held
// thread, and a fifth more. Takes a real-time signal (SIGRTMIN + 1), or SIGPROF (signal_timer.h),
// and a timer that fires once in each fifth of that CPU time.
void hold_limit_begin(int64_t max_cpu_ns);

// Gives the signal back as it was.
void hold_limit_end(void);

// Call it in a signal handler that blocks all others, before it holds a thread.
void hold_limit_unblock(void);

// Call these around what is done while a thread is held. They cost nothing.
void hold_limit_enter(void);
void hold_limit_leave(void);

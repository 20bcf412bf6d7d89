// SPDX-License-Identifier: MIT
// thread_signals: tells which signals a thread ignores, blocks, or is about to get.
#pragma once

#include <stdbool.h>

enum thread_signals_pending { PENDING_NONE, PENDING_IGNORED, PENDING_SIGNAL };

// Finds what signals are pending for the thread and not blocked: PENDING_SIGNAL if there is one
// that it does not ignore, so that its call is rightly cut short.
enum thread_signals_pending thread_signals_find_pending(int tid);

// True if the signal is pending for the thread, blocked or not.
bool thread_signals_await(int tid, int signal);

// True if the thread's process ignores the signal. If it is sent to a thread that is traced, it
// interrupts calls all the same.
bool thread_signals_ignore(int tid, int signal);

// True if the thread blocks the signal, or if that is not known.
bool thread_signals_block(int tid, int signal);

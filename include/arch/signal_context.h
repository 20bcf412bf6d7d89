// SPDX-License-Identifier: MIT
// signal_context: tells where a signal has interrupted this process, from the third argument of its
// handler (a ucontext_t).
#pragma once

#include <stdbool.h>
#include <stdint.h>

uintptr_t signal_context_pc(const void *context);

// True if the signal has ended a system call that waited, and will return EINTR.
bool signal_context_ends_call(const void *context);

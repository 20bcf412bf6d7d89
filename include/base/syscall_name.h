// SPDX-License-Identifier: MIT
// syscall_name: the names of the system calls of the processor that the profiler is built for.
#pragma once

enum { SYSCALL_MAX_NUMBER = 1023 }; // no call has a larger one

// "futex"; "syscall_9999" for a number that was not known when the profiler was built. A new
// string, owned by the caller.
char *syscall_name(int number) __attribute__((returns_nonnull));

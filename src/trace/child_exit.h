// SPDX-License-Identifier: MIT
// child_exit: remembers how the wrapped command ended, if tracee was told first.
//
// The command's parent and its tracer are one process, and the kernel reports each end once: if the
// command ends while its main thread is seized, tracee gets its exit status.
#pragma once

#include <stdbool.h>

// Begins to watch for the end of `pid`, the profiler's own child. There is one at a time.
void child_exit_watch(int pid);

// Notes the status that a process or thread has reported, as waitpid gives it, if it is the child's
// end.
void child_exit_note(int pid, int status);

// True if the child's end was noted; *ret_status is then as waitpid gives it.
bool child_exit_is_known(int *ret_status);

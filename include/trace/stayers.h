// SPDX-License-Identifier: MIT
// stayers: ends those processes of the profiler that stay, after the profile, until a call of the
// target has come to its end (parting.h), where a process above the supervisor ends.
//
// Its end may be that of its container or service, and the kernel's SIGKILL for all who are left
// there would leave a program with a count that is not what its call has done.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

// Makes those that stay children of this process, if its end would be theirs. Call it before any
// supervisor is started.
void stayers_adopt(void);

// Reaps those that have ended, and all others that have come to be children of this process: as a
// container's first process (first_process.h) it gets everybody's orphans. Call it from time to
// time; is_own(context, pid): this process has started that one, and waits for it itself.
void stayers_reap(bool (*is_own)(const void *context, pid_t pid), const void *context);

// Call it as soon as all supervisors have ended. Waits a little for those that stay; the last ones
// have to cut their calls, whose programs are told then how far these came.
void stayers_end(void);

// SPDX-License-Identifier: MIT
// parting: lets the profiler end for whoever started it, once the profile is written, while calls
// of the target that a stop has cut short still continue with their rest (syscall_rest.h), for as
// long as their readers, or writers, take. Cut now, they would come to less than they do alone. So
// the process that traces stays until then, and lets go of all else: its files, its terminal, its
// directory. A second process watches over it, as the supervisor has before.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

// True if the end of this process ends its control group or PID namespace, as the end of a
// container's or a service's first process does: all others in it get SIGKILL at once.
bool parting_ends_others(void);

// Call it before the worker is forked: it shares memory with the supervisor.
void parting_share(void);

// True, in the supervisor, if the worker has said that all is done except for such calls.
// *ret_status is the exit status then.
bool parting_is_reported(int *ret_status);

// Call it in the worker, as the last thing: stays until those calls have ended. Cuts them if nobody
// can watch over it, and on SIGTERM, SIGINT, SIGQUIT and SIGHUP.
void parting_stay(pid_t supervisor, int status);

// For processes that go on after the profiler has ended, as others see it.

// Lets go of all that somebody could wait for, or miss: files, terminal, working directory.
void stay_behind(void);

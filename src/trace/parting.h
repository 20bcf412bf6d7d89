// SPDX-License-Identifier: MIT
// parting: the profile is written, and the profiler has ended for whoever started it; but a call of
// the target that a stop has cut short still goes on with its rest (syscall_rest.h), for as long as
// its reader, or its writer, takes. Cut now, it would come to less than it does alone. So the
// process that traces stays until then, and lets go of all else: its files, its terminal, its
// directory. A second process watches over it, as the supervisor has before.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

// Before the fork of the worker, in memory that it shares with the supervisor.
void parting_share(void);

// In the supervisor: true if the worker has said that all is done but for such calls; *ret_status:
// the exit status.
bool parting_is_told(int *ret_status);

// In the worker, as the last thing: stays until those calls have ended. Where nobody can watch over
// it, they are cut. SIGTERM, SIGINT, SIGQUIT and SIGHUP cut them, too.
void parting_stay(pid_t supervisor, int status);

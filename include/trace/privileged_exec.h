// SPDX-License-Identifier: MIT
// privileged_exec: handles programs that get privileges from their file when they are executed.
//
// A set-user-ID, set-group-ID or file-capability program, which may be a script's interpreter, gets
// none while its thread is traced by a process without CAP_SYS_PTRACE (execve(2);
// cap_bprm_creds_from_file in the kernel's security/commoncap.c). So an ordinary user's profiler
// starts such a command untraced. A program that was executed in the microseconds in which its
// thread was seized is executed once more, untraced, before its first instruction: with the same
// arguments, so that nobody notices.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// True if the kernel withholds such privileges from what this process traces, since it has no
// CAP_SYS_PTRACE.
bool privileged_exec_is_withheld(void);

// True if the command, found along PATH as execvp(3) does, would get privileges from its file that
// this process does not have.
bool privileged_exec_would_gain(const char *command);

// Call it for a thread that is stopped by us at its new program's first instruction. If the kernel
// has withheld privileges from it, makes it execute the program again once it is let go; or counts
// it, if that is not sure to work.
void privileged_exec_restore(int tid);

// Returns how many programs may have lost their file's privileges for good, because their thread
// was seized while they were executed.
uint64_t privileged_exec_count_lost(void);

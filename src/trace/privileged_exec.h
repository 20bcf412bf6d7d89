// SPDX-License-Identifier: MIT
// privileged_exec: programs that get privileges from their file when they are executed.
//
// A set-user-ID, set-group-ID or file-capability program gets none while its thread is traced by
// somebody without CAP_SYS_PTRACE (execve(2); cap_bprm_creds_from_file in the kernel's
// security/commoncap.c). So an ordinary user's profiler starts such a command untraced, and a
// program that was executed in the microseconds in which its thread was seized is executed once
// more, untraced, before its first instruction: with the same arguments, and nobody has seen the
// first time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "syscall_registers.h"

// What a thread that stands at its new program's first instruction is to be given, so that it
// executes the program again.
struct privileged_exec {
	struct thread_registers registers;
	uint64_t address; // where `code` goes, over the program's own
	uint64_t code[EXECVE_CODE_WORDS];
};

// True if the kernel withholds such privileges from what this process traces: it has no
// CAP_SYS_PTRACE.
bool privileged_exec_is_withheld(void);

// True if the command, found along PATH as execvp(3) does, would get privileges from its file that
// this process does not have.
bool privileged_exec_would_gain(const char *command);

enum privileged_exec_result {
	PRIVILEGED_EXEC_NOTHING, // the program's file gives it none that it lacks
	PRIVILEGED_EXEC_AGAIN,   // *ret says how to execute it again
	PRIVILEGED_EXEC_LOST,    // it may have lost some, and cannot be executed again for sure
};

// Looks at a thread that is stopped after its exec, with these registers.
enum privileged_exec_result privileged_exec_look(int tid, const struct thread_registers *registers,
                                                 struct privileged_exec *ret);

// SPDX-License-Identifier: MIT
// tracee_rest: mends the call of a seized thread that a stop has cut, and leads the thread through
// the rest of it (syscall_mend.h). For tracee.c, which collects the thread's stops.
#pragma once

#include <stdbool.h>
#include <sys/ptrace.h>

#include "seized.h"
#include "syscall_registers.h"
#include "tracee_stop.h"

// Resumes a stopped thread by ptrace request `how`, with that signal or 0. False if it is gone.
bool tracee_rest_resume(struct seized *entry, enum __ptrace_request how, int signal);

// Mends the call of a thread that was stopped by us alone; *thread are its registers, which are set
// anew. CALL_CUT_SHORT: there is a rest to be executed.
void tracee_rest_mend(struct seized *entry, struct thread_registers *thread);

// Sends the thread into the first part of the rest. It runs, but stays seized until the whole rest
// has ended. False if it is gone.
bool tracee_rest_begin(struct seized *entry, int signal);

// Serves a stop of a thread that is in the rest: sends it on. False if the rest has ended, or a
// signal or another stop came first. `is_last`: no further part is to be entered.
bool tracee_rest_go_on(struct seized *entry, const struct tracee_stop *stop, bool is_last);

// Has the call end with what it has moved; counts it as one that could not be mended.
void tracee_rest_cut(struct seized *entry);

// SPDX-License-Identifier: MIT
#include "tracee_rest.h"

#include "call_counts.h"
#include "rescues.h"
#include "syscall_mend.h"
#include "tracee.h"
#include "tracee_registers.h"

static struct call_counts counts;

bool tracee_rest_resume(struct seized *entry, enum __ptrace_request how, int signal)
{
	entry->stands = false;
	return ptrace(how, entry->tid, NULL, (void *)(uintptr_t)signal) == 0;
}

// Sends the thread into the next part of the rest.
static bool enter_rest(struct seized *entry, int signal)
{
	struct thread_registers thread;

	if (!syscall_rest_enter(&entry->rest, &thread))
		return false;
	if (entry->rest.kind != REST_WHOLE) // the kernel sees to those
		rescues_keep(entry->tid, &entry->rest);
	if (!tracee_registers_set(entry->tid, &thread))
		return false;
	entry->call = CALL_ENTERING;
	counts.parts++;
	return tracee_rest_resume(entry, PTRACE_SYSCALL, signal);
}

bool tracee_rest_begin(struct seized *entry, int signal)
{
	const uintptr_t options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC;

	return ptrace(PTRACE_SETOPTIONS, entry->tid, NULL, (void *)options) == 0 &&
	       enter_rest(entry, signal);
}

static void note_unmended(const struct syscall_caller *caller,
                          const struct thread_registers *thread)
{
	counts.left++;
	counts.last_left = syscall_mend_number(caller, thread);
}

void tracee_rest_mend(struct seized *entry, struct thread_registers *thread)
{
	const struct syscall_caller caller = tracee_registers_caller(entry->tid, entry->tgid);
	const enum syscall_mend what = syscall_mend(&caller, thread, &entry->rest);

	counts.again += what == MEND_AGAIN;
	counts.rests += what == MEND_REST;
	if (what == MEND_AGAIN)
		tracee_registers_set(entry->tid, thread);
	else if (what == MEND_REST)
		entry->call = CALL_CUT_SHORT;
	else if (what == MEND_LEFT)
		note_unmended(&caller, thread);
}

void tracee_rest_cut(struct seized *entry)
{
	const struct syscall_rest *rest = &entry->rest;

	ptrace(PTRACE_INTERRUPT, entry->tid, NULL, NULL);
	if (rest->kind != REST_WHOLE)
		note_unmended(&rest->caller, &rest->original);
}

bool tracee_rest_go_on(struct seized *entry, const struct tracee_stop *stop, bool is_last)
{
	const int tid = entry->tid;
	struct thread_registers thread;

	if (stop->syscall && entry->call == CALL_ENTERING) {
		entry->call = CALL_INSIDE;
		return tracee_rest_resume(entry, PTRACE_SYSCALL, 0);
	}
	if (stop->syscall) // its end
		return tracee_registers_get(tid, &thread) &&
		       syscall_rest_continues(&entry->rest, syscall_result(&thread)) && !is_last &&
		       enter_rest(entry, 0);
	return !is_last && tracee_stop_is_ours(tid, stop) && enter_rest(entry, stop->signal);
}

struct call_counts tracee_call_counts(void)
{
	return counts;
}

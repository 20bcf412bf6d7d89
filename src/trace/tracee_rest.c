// SPDX-License-Identifier: MIT
#include "tracee_rest.h"

#include "rescues.h"
#include "run_stats.h"
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

static void note_unmended(const struct syscall_caller *caller,
                          const struct thread_registers *thread)
{
	counts.left++;
	counts.last_left = syscall_mend_number(caller, thread);
}

static void note_left(const struct syscall_rest *rest)
{
	if (rest->is_left)
		note_unmended(&rest->caller, &rest->original);
}

bool tracee_rest_begin(struct seized *entry, int signal)
{
	const uintptr_t options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC;

	if (ptrace(PTRACE_SETOPTIONS, entry->tid, NULL, (void *)options) == 0 &&
	    enter_rest(entry, signal))
		return true;
	note_left(&entry->rest);
	return false;
}

void tracee_rest_mend(struct seized *entry, struct thread_registers *thread)
{
	const struct syscall_caller caller = tracee_registers_caller(entry->tid, entry->tgid);
	const enum syscall_mend what = syscall_mend(&caller, thread, &entry->rest);

	counts.again += what == MEND_AGAIN;
	counts.rests += what == MEND_REST && !entry->rest.is_left;
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

static bool enter(struct seized *entry)
{
	struct thread_registers thread;

	entry->call = CALL_INSIDE;
	if (syscall_rest_empty(&entry->rest, &thread) && !tracee_registers_set(entry->tid, &thread))
		return false;
	return tracee_rest_resume(entry, PTRACE_SYSCALL, 0);
}

// Goes on after a part that has ended.
static bool go_on_behind(struct seized *entry, bool is_last)
{
	struct thread_registers thread;

	return tracee_registers_get(entry->tid, &thread) &&
	       syscall_rest_next(&entry->rest, syscall_result(&thread)) == REST_GOES_ON &&
	       !is_last && enter_rest(entry, 0);
}

// Goes on after a stop that interrupted nothing but the rest.
static bool go_on_at(struct seized *entry, const struct tracee_stop *stop, bool is_last)
{
	return !is_last && tracee_stop_is_ours(entry->tid, stop) && enter_rest(entry, stop->signal);
}

bool tracee_rest_go_on(struct seized *entry, const struct tracee_stop *stop, bool is_last)
{
	if (stop->syscall && entry->call == CALL_ENTERING)
		return enter(entry);
	if (stop->syscall ? go_on_behind(entry, is_last) : go_on_at(entry, stop, is_last))
		return true;
	note_left(&entry->rest);
	return false;
}

struct call_counts tracee_call_counts(void)
{
	return counts;
}

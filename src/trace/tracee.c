// SPDX-License-Identifier: MIT
#include "tracee.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "privileged_exec.h"
#include "proc.h"
#include "rescues.h"
#include "seized.h"
#include "syscall_mend.h"
#include "syscall_messages.h"
#include "thread_signals.h"
#include "tracee_registers.h"
#include "tracee_rest.h"

static volatile sig_atomic_t seizing, abandoned, cutting;
static volatile sig_atomic_t unserved; // tracee_take_unserved

// The command, and how it ended, if this was told here.
static int child_pid, child_status;
static bool child_has_ended;

// What the signal handler is to call.
static void (*volatile serve_at_once)(void *context);
static void *volatile serve_context;

// Has an entry served from now on, if the thread is ours; its next stop or end may have been told.
static void let_leave(struct seized *entry)
{
	entry->call = CALL_LEAVING;
	entry->stands = false; // its tid may be that of the thread that has executed a program
	unserved = 1;
	tracee_interrupt(entry->tid);
}

// Follows a thread that executes another program: it becomes the main thread, with that one's tid;
// the old tid never reports. The thread is still ours, and about to stop.
static void follow_exec(struct seized *entry)
{
	if (entry->tid == entry->tgid || seized_find(entry->tgid)) {
		seized_forget(entry->tid); // the main thread's entry is its own from now on
		return;
	}
	rescues_drop(entry->tid);
	entry->tid = entry->tgid;
	let_leave(entry);
}

void tracee_watch_child(int pid)
{
	child_pid = pid;
	child_has_ended = false;
}

bool tracee_child_has_ended(int *ret_status)
{
	if (child_has_ended)
		*ret_status = child_status;
	return child_has_ended;
}

// Notes a status, as waitpid gives it, if it is the child's end.
static void note_exit(int tid, int status)
{
	if (tid != child_pid || WIFSTOPPED(status))
		return;
	child_has_ended = true;
	child_status = status;
}

// Collects what the thread reports. False if there is no such thread any more.
static bool collect_report(struct seized *entry)
{
	int status;

	// Even if a stop was reported: the thread may have been killed since.
	if (entry->reported && !WIFSTOPPED(entry->status))
		return true;
	const pid_t pid = tracee_stop_wait(entry->tid, WNOHANG, &status);
	if (pid != entry->tid)
		return pid == 0 || entry->reported;
	if (WIFSTOPPED(status) && entry->stands && !tracee_stop_is_exec(status))
		return true; // the same stop
	entry->stands = WIFSTOPPED(status);
	entry->reported = true;
	entry->status = status;
	note_exit(entry->tid, status);
	return true;
}

// Hands over the stop or end that was collected.
static int take_report(struct seized *entry)
{
	entry->reported = false;
	tracee_stop_take(entry->tid, entry->status);
	return entry->status;
}

// Collects all reports. PTRACE_SEIZE takes the target's cred_guard_mutex. A thread that is in
// execve holds it, and waits there until all other threads of its process are gone; those that are
// seized and dead are gone only once we have reaped them: deadlock (LKML: "ptrace: fix the deadlock
// in de_thread"). The wait for the mutex is interruptible: SIGCHLD for the dead thread gets us out
// of it, this handler reaps, and the kernel restarts the call. Stops are reported along with exits,
// whatever waitid(2) is asked for; they are kept for tracee_poll.
static void collect_reports(void)
{
	for (size_t i = seized_count(); i-- > 0;)
		if (!collect_report(seized_at(i)))
			follow_exec(seized_at(i));
}

// Lets a stopped thread go. One that was killed meanwhile, as by an exec, is not stopped any more,
// and stays ours until it is reaped.
static void detach(struct seized *entry, int signal)
{
	if (ptrace(PTRACE_DETACH, entry->tid, NULL, (void *)(uintptr_t)signal) == 0)
		seized_forget(entry->tid);
	else
		let_leave(entry);
}

// Lets a thread go from a stop that is not part of the rest of a call.
static void let_go(struct seized *entry, const struct tracee_stop *stop)
{
	if (stop->exec)
		privileged_exec_restore(entry->tid);
	detach(entry, stop->signal);
}

// Mends the call at once, since nobody stays for a rest, and lets the thread go.
static void let_go_at_once(struct seized *entry, const struct tracee_stop *stop)
{
	struct thread_registers thread;

	if (tracee_stop_is_ours(entry->tid, stop) && tracee_registers_get(entry->tid, &thread)) {
		const struct syscall_caller caller =
		    tracee_registers_caller(entry->tid, entry->tgid);
		if (syscall_mend_at_once(&caller, &thread))
			tracee_registers_set(entry->tid, &thread);
	}
	let_go(entry, stop);
}

// True if the call is not to be entered again: when sampling has ended, a call that the kernel can
// begin again by itself is left to it.
static bool is_at_its_end(const struct seized *entry)
{
	return cutting || (abandoned && entry->rest.kind == REST_WHOLE);
}

static void serve_rest(struct seized *entry, const struct tracee_stop *stop)
{
	const int tid = entry->tid;
	struct thread_registers thread;

	if (tracee_rest_go_on(entry, stop, is_at_its_end(entry))) {
		if (cutting && entry->call == CALL_INSIDE)
			tracee_rest_cut(entry);
		return;
	}
	// The call is done; or a signal or a stop came first, and the call was as short as it would
	// have been without us.
	const bool known = tracee_registers_get(tid, &thread);
	const bool signalled = known && stop->syscall &&
	                       syscall_rest_has_signalled(&entry->rest, syscall_result(&thread));
	if (known) {
		if (cutting)
			syscall_messages_take_error(&entry->rest);
		syscall_rest_leave(&entry->rest, &thread);
		tracee_registers_set(tid, &thread);
	}
	rescues_drop(tid);
	if (signalled && tracee_rest_resume(entry, PTRACE_CONT, 0))
		entry->call = CALL_SIGNALLED;
	else
		detach(entry, stop->signal);
}

// Serves the next stop of a thread that is in the rest of its call, or just out of it.
static void serve_stop(struct seized *entry, const struct tracee_stop *stop)
{
	// The tid now belongs to another thread, and the rest ended with the old one.
	if (stop->exec)
		let_go(entry, stop);
	else if (entry->call != CALL_SIGNALLED)
		serve_rest(entry, stop);
	else if (stop->signal != SIGPIPE && thread_signals_await(entry->tid, SIGPIPE))
		tracee_continue(entry->tid, stop); // something else has come first
	else
		detach(entry, stop->signal == SIGPIPE ? 0 : stop->signal);
}

// Finds out what has become of a thread that could not be let go.
static void serve_leaving(struct seized *entry)
{
	struct tracee_stop stop;

	if (!collect_report(entry))
		follow_exec(entry);
	else if (!entry->reported)
		return;
	else if (tracee_stop_read(take_report(entry), &stop))
		let_go_at_once(entry, &stop);
	else
		seized_forget(entry->tid);
}

static void serve_all_leaving(void)
{
	for (size_t i = seized_count(); i-- > 0;)
		if (seized_at(i)->call == CALL_LEAVING)
			serve_leaving(seized_at(i));
}

// Serves all threads that are in the rest of a call.
static void serve_rests(void)
{
	for (size_t i = seized_count(); i-- > 0;) {
		struct seized *entry = seized_at(i);
		struct tracee_stop stop;
		if (entry->call != CALL_ENTERING && entry->call != CALL_INSIDE &&
		    entry->call != CALL_SIGNALLED)
			continue;
		const bool ours = collect_report(entry);
		if (ours && !entry->reported)
			continue;
		if (ours && tracee_stop_read(take_report(entry), &stop))
			serve_stop(entry, &stop);
		else
			seized_forget(entry->tid); // ended, or its tid is another thread's
	}
}

// Lets go of a thread that was awaited; if its call was cut short, after the rest.
static void release_awaited(struct seized *entry, const struct tracee_stop *stop)
{
	struct thread_registers thread;

	entry->call = CALL_NONE;
	if (cutting || !tracee_stop_is_ours(entry->tid, stop) ||
	    !tracee_registers_get(entry->tid, &thread) ||
	    syscall_result(&thread) <= 0) { // not a count
		let_go_at_once(entry, stop);
		return;
	}
	tracee_rest_mend(entry, &thread);
	tracee_release(entry->tid, stop);
}

void tracee_look_again(void)
{
	// First: what it finds of those that the next two serve would wait for another SIGCHLD.
	collect_reports();
	serve_all_leaving();
	serve_rests();
	for (size_t i = 0; i < seized_count();) {
		struct seized *entry = seized_at(i);
		struct tracee_stop stop;
		if (!entry->reported || (entry->call != CALL_NONE && entry->call != CALL_AWAITED))
			i++;
		else if (!tracee_stop_read(take_report(entry), &stop))
			seized_forget(entry->tid);
		else if (entry->call == CALL_AWAITED)
			release_awaited(entry, &stop);
		else
			let_go_at_once(entry, &stop); // takes it off the list
	}
	tracee_stop_let_strays_go(tracee_is_seized);
}

static void on_child_signal(int signal)
{
	const int saved_errno = errno;

	(void)signal;
	if (seizing)
		collect_reports();
	if (abandoned)
		tracee_look_again();
	unserved = 1;
	if (serve_at_once)
		serve_at_once(serve_context);
	errno = saved_errno;
}

static void block_child_signal(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(how, &set, NULL);
}

void tracee_setup(void)
{
	struct sigaction action = {.sa_handler = on_child_signal, .sa_flags = SA_RESTART};

	block_child_signal(SIG_BLOCK);
	// Nothing may interrupt the handler, least of all to leave guarded work for good (guard.h).
	sigfillset(&action.sa_mask);
	sigaction(SIGCHLD, &action, NULL);
}

void tracee_serve_at_once(void (*serve)(void *context), void *context, bool only_in_seize)
{
	serve_context = context;
	serve_at_once = serve;
	block_child_signal(SIG_UNBLOCK); // serves those that have stopped before
	if (only_in_seize)
		block_child_signal(SIG_BLOCK);
}

void tracee_serve_in_turn(void)
{
	block_child_signal(SIG_BLOCK);
	serve_at_once = NULL;
}

static enum tracee_result result_of(long value)
{
	if (value == 0)
		return TRACEE_OK;
	return errno == EPERM ? TRACEE_DENIED : TRACEE_GONE;
}

void tracee_prepare(void)
{
	collect_reports();
}

static enum tracee_result ask_to_seize(int tid)
{
	seizing = seized_count() > 0;
	if (seizing)
		block_child_signal(SIG_UNBLOCK);
	const enum tracee_result result =
	    result_of(ptrace(PTRACE_SEIZE, tid, NULL, (void *)PTRACE_O_TRACEEXEC));
	if (seizing)
		block_child_signal(SIG_BLOCK);
	seizing = 0;
	return result;
}

enum tracee_result tracee_seize(int tid, int tgid)
{
	seized_reserve();
	const enum tracee_result result = ask_to_seize(tid);
	struct seized *known = seized_find(tid);

	if (result == TRACEE_OK) {
		if (known)
			seized_forget(tid); // it was another thread's
		struct seized *entry = seized_add(tid, tgid);
		// The handler may have been told of its end before it knew of it (collect_reports).
		if (unserved)
			collect_report(entry);
	}
	if (result != TRACEE_DENIED)
		return result;
	if (known && (known->call == CALL_LEAVING || known->call == CALL_NONE)) {
		known->call = CALL_NONE; // it has not been let go yet
		return TRACEE_OK;
	}
	return proc_has_ended(tgid, tid) ? TRACEE_GONE : TRACEE_DENIED;
}

enum tracee_result tracee_interrupt(int tid)
{
	const enum tracee_result result = result_of(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL));

	if (result == TRACEE_GONE && seized_find(tid))
		follow_exec(seized_find(tid));
	return result;
}

static enum tracee_wait wait_for(int tid, int flags, struct tracee_stop *ret)
{
	struct seized *entry = seized_find(tid);
	int status = 0;
	pid_t pid = tid;

	*ret = (struct tracee_stop){0};
	if (!entry)
		return TRACEE_EXITED; // it has been let go
	if (entry->reported) {
		status = take_report(entry);
	} else {
		do
			pid = tracee_stop_wait(tid, flags, &status);
		while (pid < 0 && errno == EINTR);
		if (pid > 0)
			tracee_stop_take(tid, status);
	}
	if (pid == 0)
		return TRACEE_RUNS;
	if (pid < 0) { // another thread of its process has executed a program
		follow_exec(entry);
		return TRACEE_EXITED;
	}
	entry->stands = tracee_stop_read(status, ret);
	if (entry->stands)
		return TRACEE_STOPPED;
	note_exit(tid, status);
	seized_forget(tid);
	return TRACEE_EXITED;
}

enum tracee_wait tracee_poll(int tid, struct tracee_stop *ret)
{
	return wait_for(tid, WNOHANG, ret);
}

enum tracee_wait tracee_wait(int tid, struct tracee_stop *ret)
{
	return wait_for(tid, 0, ret);
}

bool tracee_registers(int tid, struct tracee_stop *stop, struct registers *ret, uint64_t *ret_tls)
{
	struct seized *entry = seized_find(tid);
	struct thread_registers thread;

	if (!tracee_registers_get(tid, &thread))
		return false;
	thread_registers_read(&thread, ret);
	*ret_tls = thread_registers_tls(&thread);
	stop->call = syscall_number(&thread);
	if (entry && stop->call >= 0 && tracee_stop_is_ours(tid, stop)) {
		tracee_rest_mend(entry, &thread);
		stop->resumes = syscall_mend_resumes(&thread);
	}
	return !thread_registers_are_32_bit(&thread);
}

void tracee_release(int tid, const struct tracee_stop *stop)
{
	struct seized *entry = seized_find(tid);

	if (!entry || (entry->call == CALL_CUT_SHORT && tracee_rest_begin(entry, stop->signal)))
		return;
	let_go(entry, stop);
}

void tracee_continue(int tid, const struct tracee_stop *stop)
{
	struct seized *entry = seized_find(tid);

	// SIGCONT ends a group-stop, and is reported as a stop of its own (ptrace(2)).
	if (entry)
		tracee_rest_resume(entry, stop->group_stop ? PTRACE_LISTEN : PTRACE_CONT,
		                   stop->signal);
}

bool tracee_has_any(void)
{
	return seized_count() > 0;
}

bool tracee_is_seized(int tid)
{
	return seized_find(tid) != NULL;
}

bool tracee_take_unserved(void)
{
	const bool is = unserved;

	unserved = 0;
	return is;
}

size_t tracee_serve(void)
{
	size_t n_left = 0;

	serve_all_leaving();
	serve_rests();
	for (size_t i = 0; i < seized_count(); i++)
		n_left += seized_at(i)->call != CALL_NONE;
	return n_left;
}

bool tracee_is_in_rest(int tid)
{
	const struct seized *entry = seized_find(tid);

	return entry && entry->call != CALL_NONE && entry->call != CALL_LEAVING;
}

// Ends calls that are in their rest: those that the kernel begins again by itself, or all of them.
static void cut_rests(bool all)
{
	for (size_t i = 0; i < seized_count(); i++) {
		struct seized *entry = seized_at(i);
		if (entry->call == CALL_INSIDE && (all || entry->rest.kind == REST_WHOLE))
			tracee_rest_cut(entry);
	}
}

// Has those awaited that were asked to stop and wait for a CPU, be it in the middle of a call; or
// that have stopped since anybody looked.
static void await_runnable(void)
{
	for (size_t i = 0; i < seized_count(); i++) {
		struct seized *entry = seized_at(i);
		if (entry->call == CALL_NONE && !proc_is_stuck(entry->tgid, entry->tid))
			entry->call = CALL_AWAITED;
	}
}

void tracee_abandon_all(void)
{
	cut_rests(false);
	await_runnable();
	abandoned = 1;
	tracee_look_again();
	block_child_signal(SIG_UNBLOCK);
}

size_t tracee_count_rests(bool awake)
{
	size_t n = 0;

	for (size_t i = 0; i < seized_count(); i++) {
		const struct seized *entry = seized_at(i);
		n += tracee_is_in_rest(entry->tid) &&
		     !(awake && proc_is_stuck(entry->tgid, entry->tid));
	}
	return n;
}

void tracee_cut_rests(void)
{
	cutting = 1;
	cut_rests(true);
	tracee_look_again();
}

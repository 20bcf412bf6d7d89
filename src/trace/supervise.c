// SPDX-License-Identifier: MIT
#include "supervise.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "first_process.h"
#include "holding.h"
#include "keeper.h"
#include "memory.h"
#include "parting.h"
#include "proc.h"
#include "rescues.h"
#include "stuck_worker.h"
#include "tracee_rescue.h"

enum { CONTINUED_NS = 10000000 }; // from a group's SIGCONT until the whole group runs

// What the worker tells the supervisor about the wrapped command while job control has stopped it;
// else 0.
struct job {
	_Atomic int stopped_command; // its pid
	_Atomic int stop_signal;
	_Atomic int command; // first_process.h
};

static pid_t tracing_for; // in the worker: the supervisor; else 0

static const int job_signals[] = {SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU};

static bool is_job_signal(int number)
{
	for (size_t i = 0; i < array_size(job_signals); i++)
		if (job_signals[i] == number)
			return true;
	return false;
}

static void fill_signals(sigset_t *set, bool wrapping)
{
	struct sigaction hangup;

	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGQUIT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGUSR1);
	sigaddset(set, SIGCHLD);
	// If nohup(1) had it ignored, it stays ignored.
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
	for (size_t i = 0; wrapping && i < array_size(job_signals); i++)
		sigaddset(set, job_signals[i]);
}

void supervise_note_command(const struct origin *origin, int command)
{
	if (origin->job)
		origin->job->command = command ? command : -1;
}

void supervise_leave_group(const struct origin *origin)
{
	if (origin->group == 0)
		setpgid(0, 0);
}

void supervise_follow(const struct origin *origin, int command, int stop_signal)
{
	if (!origin->job)
		return;
	origin->job->stopped_command = stop_signal ? command : 0;
	origin->job->stop_signal = stop_signal;
	// The terminal's own signal may still be pending there; one is as good as two.
	if (getppid() == origin->supervisor)
		kill(origin->supervisor, stop_signal ? SIGTSTP : SIGCONT);
}

bool supervise_is_stopped(const struct origin *origin)
{
	struct proc_stat stat;

	return proc_read_stat(-1, origin->supervisor, origin->supervisor, &stat) &&
	       stat.state == 'T';
}

// Stops this process as the signal does, which is otherwise blocked.
static void stop_by(int number)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

// Continues the command if only this process was continued, as with kill -CONT. A shell's fg
// continues the whole process group, and the command must not get a second SIGCONT.
static void continue_command(const struct job *job)
{
	const struct timespec moment = {.tv_nsec = CONTINUED_NS};
	const int command = job ? job->stopped_command : 0;
	struct proc_stat stat;

	if (!command)
		return;
	nanosleep(&moment, NULL);
	if (job->stopped_command == command && proc_read_stat(-1, command, command, &stat) &&
	    stat.state == 'T')
		kill(command, SIGCONT);
}

static void serve_job(const siginfo_t *info, pid_t worker, const struct job *job)
{
	const bool from_worker = info->si_code == SI_USER && info->si_pid == worker;

	if (info->si_signo == SIGCONT) {
		if (!from_worker)
			continue_command(job);
	} else if (job && job->stop_signal) {
		stop_by(job->stop_signal);
	} else if (!from_worker && info->si_code != SI_KERNEL) {
		stop_by(
		    info->si_signo); // to this process alone; a terminal's goes to the command, too
	}
}

static int run_worker(int (*work)(void *, const struct origin *), void *context,
                      const struct origin *origin, bool wrapping)
{
	sigset_t background;

	// Signals stay blocked until the sampler awaits them.
	if (!wrapping || origin->group != 0)
		setpgid(0, 0); // else supervise_leave_group does it
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != origin->supervisor)
		return 1; // it is already gone
	tracing_for = origin->supervisor;
	keeper_note_worker();
	// With this blocked, a process outside the terminal's foreground group may write to it.
	sigemptyset(&background);
	sigaddset(&background, SIGTTOU);
	sigprocmask(SIG_BLOCK, &background, NULL);
	return work(context, origin);
}

static bool is_for_the_command(const siginfo_t *info, bool wrapping)
{
	return wrapping && info->si_code == SI_KERNEL &&
	       (info->si_signo == SIGINT || info->si_signo == SIGQUIT);
}

// SIGUSR1 is the flight recorder's.
static bool serve_outside(const siginfo_t *info, struct first_process *first)
{
	return info->si_signo != SIGUSR1 &&
	       first_process_pass(first, info->si_signo, info->si_code, info->si_pid);
}

static void reap_orphans(pid_t worker)
{
	pid_t pid;

	while (first_process_is() && (pid = first_process_ended_child()) && pid != worker)
		waitpid(pid, NULL, WNOHANG);
}

static bool is_own(const siginfo_t *info)
{
	return info->si_code == SI_USER && info->si_pid == getpid();
}

// Passes a hangup on. When a terminal is closed, the kernel tells the session's leader first, and
// the others when the leader ends (credentials(7)). So as the leader we must end after the command.
static void pass_hangup_on(const siginfo_t *info, bool wrapping)
{
	if (wrapping && info->si_signo == SIGHUP && info->si_code == SI_KERNEL &&
	    getsid(0) == getpid())
		kill(0, SIGHUP);
}

// Returns the exit status that stands for the worker's end.
static int exit_status_of(int status)
{
	tracee_rescue();
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (WTERMSIG(status) != SIGINT && WTERMSIG(status) != SIGTERM)
		fprintf(stderr,
		        "profiler: the sampling process was killed by signal %d (%s); the target "
		        "keeps running\n",
		        WTERMSIG(status), strsignal(WTERMSIG(status)));
	return 128 + WTERMSIG(status);
}

// Lets the keeper go on where we have killed a stuck worker. False if there is none.
static bool go_on_without_worker(pid_t *worker, struct stuck_worker *stuck)
{
	if (!stuck->is_killed || !stuck->goes_on)
		return false; // not by us: it may have been anywhere
	tracee_rescue();
	holding_end(); // the worker may have been killed within
	*worker = keeper_take_over(stuck->holds);
	*stuck = (struct stuck_worker){
	    .pid = *worker, .max_copy_ns = stuck->max_copy_ns, .is_to_end = true};
	return *worker != 0;
}

// Kills the worker. If that has not helped, as in process_vm_readv(2) on a process whose memory is
// locked, goes on without it: it does nothing any more. False if nobody can go on.
static bool end_stuck(pid_t *worker, struct stuck_worker *stuck)
{
	if (stuck->is_killed)
		return go_on_without_worker(worker, stuck);
	kill(*worker, SIGKILL);
	stuck->is_killed = true;
	return true;
}

static int wait_for_worker(pid_t worker, const sigset_t *set, bool wrapping, const struct job *job)
{
	const struct timespec wait = {.tv_nsec = STUCK_WORKER_LOOK_NS};
	struct stuck_worker stuck = {.pid = worker, .max_copy_ns = STUCK_WORKER_MAX_COPY_NS};
	struct first_process first = {.command = wrapping && job ? &job->command : NULL};
	sigset_t awaited = *set;

	if (wrapping)
		first_process_await(&awaited);
	for (;;) {
		siginfo_t info;
		int status;
		const bool changed = waitpid(worker, &status, WNOHANG | WUNTRACED) == worker;
		if (changed && !WIFSTOPPED(status)) {
			if (go_on_without_worker(&worker, &stuck))
				continue;
			return exit_status_of(status);
		}
		if (parting_is_reported(&status))
			return status;
		if (changed)
			kill(worker, SIGCONT); // it may be holding a thread
		if (stuck_worker_look(&stuck) && !end_stuck(&worker, &stuck))
			return 128 + SIGKILL;
		reap_orphans(worker);
		first_process_pass_early(&first);
		if (sigtimedwait(&awaited, &info, &wait) < 0 || info.si_signo == SIGCHLD ||
		    serve_outside(&info, &first) || !sigismember(set, info.si_signo) ||
		    is_for_the_command(&info, wrapping) || is_own(&info))
			continue;
		if (is_job_signal(info.si_signo)) {
			serve_job(&info, worker, job);
			continue;
		}
		pass_hangup_on(&info, wrapping);
		stuck.is_to_end |= info.si_signo != SIGUSR1;
		kill(worker, info.si_signo);
	}
}

static struct job *share_job(void)
{
	static struct job *job;

	if (!job) {
		void *memory = mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE,
		                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		job = memory == MAP_FAILED ? NULL : memory;
	}
	return job;
}

const _Atomic int *supervise_command(void)
{
	const struct job *job = share_job();

	return job ? &job->command : NULL;
}

// Forks the worker, which has its name from its first instruction on: nobody can take it for
// something else. The profiler's own name stays with the supervisor.
static pid_t fork_worker(void)
{
	char name[16] = ""; // prctl(2)

	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, SUPERVISE_WORKER_NAME);
	const pid_t worker = fork();
	if (worker != 0)
		prctl(PR_SET_NAME, name);
	return worker;
}

static void note_origin(const struct exec_kept *kept, bool wrapping, struct origin *ret)
{
	sigset_t mask;

	*ret = (struct origin){
	    .supervisor = getpid(),
	    .job = wrapping ? share_job() : NULL,
	    .group = getpgrp(),
	};
	sigprocmask(SIG_BLOCK, NULL, &mask);
	if (kept)
		ret->kept = *kept;
	else if (wrapping)
		exec_kept_take(&mask, &ret->kept);
	else
		ret->kept.mask = mask;
}

int supervise(int (*work)(void *, const struct origin *), void *context, bool wrapping,
              int worker_fd, const struct exec_kept *kept)
{
	struct origin origin;
	sigset_t set, blocked;
	int status;

	note_origin(kept, wrapping, &origin);
	// If whoever started us ignored it, it would never come, nor the worker's exit status.
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &origin.child);
	// Block them before the fork, so that none gets lost.
	fill_signals(&set, wrapping);
	sigorset(&blocked, &origin.kept.mask, &set);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	rescues_share();
	parting_share();
	holding_share();
	keeper_share();
	const pid_t worker = fork_worker();
	if (worker < 0) {
		fprintf(stderr, "profiler: no process can be started: %s\n", strerror(errno));
		status = 1;
	} else if (worker == 0) {
		status = run_worker(work, context, &origin, wrapping);
		keeper_exit(status);
	} else {
		if (worker_fd >= 0)
			close(worker_fd);
		keeper_note_supervisor();
		status = wait_for_worker(worker, &set, wrapping, origin.job);
		keeper_dismiss();
	}
	exec_kept_deinit(&origin.kept);
	return status;
}

int supervise_part(int status)
{
	if (tracing_for)
		parting_stay(tracing_for, status);
	return status;
}

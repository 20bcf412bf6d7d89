// SPDX-License-Identifier: MIT
#include "supervise.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "error.h"
#include "first_process.h"
#include "holding.h"
#include "memory.h"
#include "parting.h"
#include "proc.h"
#include "rescues.h"
#include "stuck_worker.h"
#include "tracee_rescue.h"

enum { CONTINUED_NS = 10000000 };   // from a group's SIGCONT until the whole group runs
#define END_NS (10 * NS_PER_SECOND) // for a worker to end in a run that is given up

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

static void fill_signals(sigset_t *set, const struct supervised *supervised)
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
	if (supervised->may_be_given_up)
		sigaddset(set, SIGUSR2);
	for (size_t i = 0; supervised->wrapping && i < array_size(job_signals); i++)
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

// Follows the supervisor: its end is told by a signal. False: it is already gone.
static bool follow_supervisor(const struct origin *origin)
{
	sigset_t background;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	// With this blocked, a process outside the terminal's foreground group may write to it.
	sigemptyset(&background);
	sigaddset(&background, SIGTTOU);
	sigprocmask(SIG_BLOCK, &background, NULL);
	return getppid() == origin->supervisor;
}

static int run_worker(const struct supervised *supervised, const struct origin *origin)
{
	// Signals stay blocked until the sampler awaits them.
	if (!supervised->wrapping || origin->group != 0)
		setpgid(0, 0); // else supervise_leave_group does it
	if (!follow_supervisor(origin))
		return 1;
	tracing_for = origin->supervisor;
	return supervised->work(supervised->context, origin);
}

static int run_writer(const struct supervised *supervised, const struct origin *origin,
                      const struct supervise_writer *writer)
{
	setpgid(0, 0);
	if (supervised->worker_fd >= 0)
		close(supervised->worker_fd);
	// What had begun is kept though the supervisor is gone.
	follow_supervisor(origin);
	return supervised->write(supervised->context, writer);
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

// The supervisor's children.
struct children {
	pid_t worker, writer;      // 0: it has ended, or there was none
	int status, writer_status; // their exit statuses
	int stream;                // the worker's end; -1: closed
	const struct job *job;     // NULL: no command is wrapped, or there is no memory for it
	struct stuck_worker stuck;
};

static void reap_orphans(const struct children *children)
{
	pid_t pid;

	while (first_process_is() && (pid = first_process_ended_child()) &&
	       pid != children->worker && pid != children->writer)
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

// Returns the exit status that stands for a child's end.
static int exit_status_of(int status, const char *name, const char *then)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (WTERMSIG(status) != SIGINT && WTERMSIG(status) != SIGTERM)
		fprintf(stderr, "profiler: the %s process was killed by signal %d (%s); %s\n", name,
		        WTERMSIG(status), strsignal(WTERMSIG(status)), then);
	return 128 + WTERMSIG(status);
}

// The worker has ended, or does nothing any more: the writer has all that there will be.
static void end_worker(struct children *children, int status)
{
	children->worker = 0;
	children->status = status;
	if (children->stream >= 0) {
		shutdown(children->stream, SHUT_WR); // it may wait, killed, with its end open
		close(children->stream);
	}
	children->stream = -1;
}

// Says what has become of the target of a worker that was killed.
static const char *fate_of_target(const struct job *job)
{
	if (!job || job->command > 0)
		return "the target keeps running";
	return job->command == 0 ? "the command may not have started" : "the command has ended";
}

static void note_end_of_worker(struct children *children, int status)
{
	tracee_rescue();
	if (children->stuck.is_killed && children->stuck.is_kept)
		end_worker(children, 0); // that was told
	else
		end_worker(children,
		           exit_status_of(status, "sampling", fate_of_target(children->job)));
}

// Kills the worker. If that has not helped, as in process_vm_readv(2) on a process whose memory is
// locked, goes on without it: a killed process executes nothing more, however long it still waits.
static void end_stuck(struct children *children)
{
	struct stuck_worker *stuck = &children->stuck;

	if (stuck->is_killed) {
		tracee_rescue();
		end_worker(children, stuck->is_kept ? 0 : 128 + SIGKILL);
		return;
	}
	kill(stuck->pid, SIGKILL);
	stuck->is_killed = true;
	if (stuck->kill_ns)
		stuck->kill_ns += END_NS; // for its end
}

static void look_at_worker(struct children *children)
{
	int status;

	if (!children->worker)
		return;
	const bool changed =
	    waitpid(children->worker, &status, WNOHANG | WUNTRACED) == children->worker;
	if (changed && !WIFSTOPPED(status)) {
		note_end_of_worker(children, status);
		return;
	}
	if (parting_is_reported(&status)) {
		end_worker(children, status);
		return;
	}
	if (changed)
		kill(children->worker, SIGCONT); // it may be holding a thread
	if (stuck_worker_look(&children->stuck))
		end_stuck(children);
}

static void look_at_writer(struct children *children)
{
	int status;

	if (!children->writer ||
	    waitpid(children->writer, &status, WNOHANG | WUNTRACED) != children->writer)
		return;
	if (WIFSTOPPED(status)) {
		kill(children->writer, SIGCONT);
		return;
	}
	children->writer = 0;
	children->writer_status =
	    exit_status_of(status, "writing", "what is in no recording or window is lost");
}

// To the writer first: it forgets those that have come when the worker has ended.
static void pass_on(const struct children *children, int number)
{
	if (children->writer && number != SIGUSR1)
		kill(children->writer, number);
	if (children->worker)
		kill(children->worker, number);
}

// What is not written yet is lost.
static void give_up(struct children *children)
{
	if (children->stuck.kill_ns)
		return;
	children->stuck.kill_ns = clock_now_ns() + END_NS;
	if (children->writer)
		kill(children->writer, SIGKILL);
	if (children->worker && !children->stuck.is_to_end)
		kill(children->worker, SIGTERM);
	children->stuck.is_to_end = true;
}

// If the worker was killed before its first sample, that is why the writer has nothing to write.
static int exit_status(const struct children *children)
{
	if (children->writer_status == EXIT_STATUS_TARGET && children->status > 128)
		return children->status;
	return children->writer_status ?: children->status;
}

static int wait_for_children(struct children *children, const sigset_t *set, bool wrapping)
{
	const struct job *job = children->job;
	const struct timespec wait = {.tv_nsec = STUCK_WORKER_LOOK_NS};
	struct first_process first = {.command = wrapping && job ? &job->command : NULL};
	sigset_t awaited = *set;

	if (wrapping)
		first_process_await(&awaited);
	for (;;) {
		siginfo_t info;
		look_at_worker(children);
		look_at_writer(children);
		if (!children->worker && !children->writer)
			return exit_status(children);
		reap_orphans(children);
		first_process_pass_early(&first);
		if (sigtimedwait(&awaited, &info, &wait) < 0 || info.si_signo == SIGCHLD ||
		    serve_outside(&info, &first) || !sigismember(set, info.si_signo) ||
		    is_for_the_command(&info, wrapping) || is_own(&info))
			continue;
		if (is_job_signal(info.si_signo)) {
			serve_job(&info, children->stuck.pid, job);
			continue;
		}
		if (info.si_signo == SIGUSR2) {
			give_up(children);
			continue;
		}
		pass_hangup_on(&info, wrapping);
		children->stuck.is_to_end |= info.si_signo != SIGUSR1;
		pass_on(children, info.si_signo);
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

// Forks a child, which has its name from its first instruction on: nobody can take it for something
// else. The profiler's own name stays with the supervisor.
static pid_t fork_named(const char *child_name)
{
	char name[16] = ""; // prctl(2)

	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, child_name);
	const pid_t pid = fork();
	if (pid != 0)
		prctl(PR_SET_NAME, name);
	return pid;
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

// Makes the sockets between the worker and the writer: each has its end of both.
static bool open_ends(struct supervise_ends *worker, struct supervise_ends *writer)
{
	int stream[2], files[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream) != 0)
		return false;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, files) != 0) {
		close(stream[0]);
		close(stream[1]);
		return false;
	}
	*worker = (struct supervise_ends){stream[0], files[0]};
	*writer = (struct supervise_ends){stream[1], files[1]};
	return true;
}

void supervise_close_ends(const struct supervise_ends *ends)
{
	if (ends->stream) {
		close(ends->stream);
		close(ends->files);
	}
}

static int say_no_process(void)
{
	fprintf(stderr, "profiler: cannot start sampling: %s%s\n", strerror(errno),
	        errno == EMFILE ? ": raise the limit (ulimit -n)" : "");
	return EXIT_STATUS_TARGET;
}

// In the supervisor: the worker is there.
static int look_after(const struct supervised *supervised, const struct origin *origin,
                      struct supervise_writer *writer, const sigset_t *set)
{
	struct children children = {
	    .worker = writer->worker,
	    .stream = -1,
	    .job = origin->job,
	    .stuck = {.pid = writer->worker,
	              .max_copy_ns = STUCK_WORKER_MAX_COPY_NS,
	              .is_kept = supervised->is_kept},
	};

	if (supervised->write) {
		children.writer = fork_named("profiler-writer");
		if (children.writer == 0) {
			supervise_close_ends(&origin->to_writer);
			return run_writer(supervised, origin, writer);
		}
		children.stream = origin->to_writer.stream;
		close(origin->to_writer.files);
		supervise_close_ends(&writer->ends); // without a writer, the worker ends by that
	}
	if (children.writer < 0) {
		children.writer = 0;
		children.writer_status = say_no_process();
	}
	if (supervised->worker_fd >= 0)
		close(supervised->worker_fd);
	return wait_for_children(&children, set, supervised->wrapping);
}

int supervise(const struct supervised *supervised)
{
	struct supervise_writer writer = {.supervisor = getpid()};
	struct origin origin;
	sigset_t set, blocked;
	int status;

	note_origin(supervised->kept, supervised->wrapping, &origin);
	// If whoever started us ignored it, it would never come, nor the worker's exit status.
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &origin.child);
	// Block them before the fork, so that none gets lost.
	fill_signals(&set, supervised);
	sigorset(&blocked, &origin.kept.mask, &set);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	rescues_share();
	parting_share();
	holding_share();
	if (supervised->write && !open_ends(&origin.to_writer, &writer.ends))
		return say_no_process();
	writer.worker = fork_named(SUPERVISE_WORKER_NAME);
	if (writer.worker < 0) {
		status = say_no_process();
	} else if (writer.worker == 0) {
		supervise_close_ends(&writer.ends);
		status = run_worker(supervised, &origin);
	} else {
		status = look_after(supervised, &origin, &writer, &set);
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

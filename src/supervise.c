#include "supervise.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rescues.h"
#include "tracee.h"

static void fill_signals(sigset_t *set)
{
	struct sigaction hangup;

	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGQUIT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGUSR1);
	sigaddset(set, SIGCHLD);
	// nohup(1) had it ignored: so it stays.
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
}

static int run_worker(int (*work)(void *, const struct origin *), void *context,
                      const struct origin *origin, pid_t supervisor)
{
	sigset_t background;

	// Signals stay blocked until the sampler awaits them.
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != supervisor)
		return 1; // it is gone already
	// With this blocked, a process outside of the terminal's foreground group may write to it.
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

static bool is_own(const siginfo_t *info)
{
	return info->si_code == SI_USER && info->si_pid == getpid();
}

// Of a terminal that is closed, the kernel tells the session's leader first, and the others when
// that one ends (credentials(7)). As the leader we are to end after the command.
static void pass_hangup_on(const siginfo_t *info, bool wrapping)
{
	if (wrapping && info->si_signo == SIGHUP && info->si_code == SI_KERNEL &&
	    getsid(0) == getpid())
		kill(0, SIGHUP);
}

// The exit status that stands for the worker's end.
static int exit_status_of(int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	tracee_rescue();
	if (WTERMSIG(status) != SIGINT && WTERMSIG(status) != SIGTERM)
		fprintf(stderr,
		        "profiler: its worker was ended by signal %d (%s); the target runs on\n",
		        WTERMSIG(status), strsignal(WTERMSIG(status)));
	return 128 + WTERMSIG(status);
}

static int wait_for_worker(pid_t worker, const sigset_t *set, bool wrapping)
{
	for (;;) {
		siginfo_t info;
		int status;
		const bool changed = waitpid(worker, &status, WNOHANG | WUNTRACED) == worker;
		if (changed && !WIFSTOPPED(status))
			return exit_status_of(status);
		if (changed)
			kill(worker, SIGCONT); // it may be holding a thread
		if (sigwaitinfo(set, &info) < 0 || info.si_signo == SIGCHLD ||
		    is_for_the_command(&info, wrapping) || is_own(&info))
			continue;
		pass_hangup_on(&info, wrapping);
		kill(worker, info.si_signo);
	}
}

int supervise(int (*work)(void *, const struct origin *), void *context, bool wrapping,
              int worker_fd)
{
	const pid_t supervisor = getpid();
	struct origin origin = {
	    .group = getpgrp(),
	    .timer_slack_ns = prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL),
	};
	sigset_t set;

	// Ignored by whoever started us, it would never come, nor the worker's exit status.
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &origin.child);
	// Blocked before the fork: none gets lost.
	fill_signals(&set);
	sigprocmask(SIG_BLOCK, &set, &origin.mask);
	rescues_share();
	const pid_t worker = fork();
	if (worker < 0) {
		fprintf(stderr, "profiler: no process can be started: %s\n", strerror(errno));
		return 1;
	}
	if (worker == 0)
		return run_worker(work, context, &origin, supervisor);
	if (worker_fd >= 0)
		close(worker_fd);
	return wait_for_worker(worker, &set, wrapping);
}

// SPDX-License-Identifier: MIT
#include "top_signals.h"

#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"
#include "supervise.h"
#include "top_live.h"

enum { EARLY_LOOK_MS = 10 };

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};
static const int screen_signals[] = {SIGWINCH, SIGTSTP, SIGCONT, SIGQUIT};

static void fill_own(bool has_screen, sigset_t *ret)
{
	struct sigaction hangup;

	sigemptyset(ret);
	for (size_t i = 0; i < array_size(ending_signals); i++)
		sigaddset(ret, ending_signals[i]);
	// If nohup(1) had it ignored, it stays ignored.
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler == SIG_IGN)
		sigdelset(ret, SIGHUP);
	for (size_t i = 0; has_screen && i < array_size(screen_signals); i++)
		sigaddset(ret, screen_signals[i]);
}

void top_signals_block(struct top_signals *signals, bool has_screen, bool wraps)
{
	sigset_t blocked;

	fill_own(has_screen, &signals->own);
	signals->awaited = signals->own;
	sigaddset(&signals->awaited, SIGCHLD);
	blocked = signals->awaited;
	sigaddset(&blocked, SIGPIPE);
	sigaddset(&blocked, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &blocked, &signals->mask);
	if (!wraps)
		return;
	first_process_await(&signals->awaited);
	signals->first.command = supervise_command();
}

void top_signals_await(struct top_signals *signals)
{
	signals->fd = signalfd(-1, &signals->awaited, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void reap_orphans(struct top_live *live, pid_t saver)
{
	pid_t pid;

	top_live_has_ended(live);
	while (first_process_is() && (pid = first_process_ended_child()) && pid != live->pid &&
	       pid != saver)
		waitpid(pid, NULL, WNOHANG);
}

static bool pass(struct top_signals *signals, const struct signalfd_siginfo *info)
{
	const bool passed = first_process_pass(&signals->first, (int)info->ssi_signo,
	                                       info->ssi_code, (pid_t)info->ssi_pid);

	signals->has_passed |= passed;
	return passed;
}

bool top_signals_next(struct top_signals *signals, struct top_live *live, pid_t saver,
                      struct signalfd_siginfo *ret)
{
	first_process_pass_early(&signals->first);
	while (read(signals->fd, ret, sizeof(*ret)) == sizeof(*ret)) {
		if (ret->ssi_signo == SIGCHLD)
			reap_orphans(live, saver);
		else if (!pass(signals, ret) && sigismember(&signals->own, (int)ret->ssi_signo))
			return true;
	}
	return false;
}

int top_signals_wait_ms(struct top_signals *signals)
{
	return first_process_pass_early(&signals->first) ? EARLY_LOOK_MS : -1;
}

void top_signals_stop_here(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL); // stops here
	sigprocmask(SIG_BLOCK, &set, NULL);
}

// SPDX-License-Identifier: MIT
#include "events.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "supervise.h"

enum { MAX_SIGNALS = 8 }; // how many are read at once

static void fill_signals(sigset_t *set)
{
	struct sigaction hangup;

	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	// If nohup(1) had it ignored, it stays ignored.
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
	sigaddset(set, SIGQUIT);
	sigaddset(set, SIGUSR1);
	sigaddset(set, SIGCHLD);
}

void events_init(struct events *events)
{
	sigset_t set;

	*events = (struct events){.target_fd = -1};
	fill_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	// A closed pipe, and a file larger than the limit, show as errors of write(2).
	sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, &events->original_pipe);
	sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, &events->original_xfsz);
	events->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	events_sharpen();
}

void events_sharpen(void)
{
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

void events_watch(struct events *events, int pid)
{
	events->target_fd = syscall(SYS_pidfd_open, pid, 0);
}

static void note_signal(struct events *events, uint32_t number)
{
	if (number == SIGUSR1)
		events->dump = true;
	else if (number == SIGCHLD)
		events->child = true;
	else
		events->stop = true;
}

static void read_signals(struct events *events)
{
	struct signalfd_siginfo infos[MAX_SIGNALS];
	ssize_t n;

	do {
		n = read(events->signal_fd, infos, sizeof(infos)); // as many as have come
		for (ssize_t i = 0; i < n / (ssize_t)sizeof(infos[0]); i++)
			note_signal(events, infos[i].ssi_signo);
	} while (n == (ssize_t)sizeof(infos));
}

void events_wait(struct events *events, int64_t deadline_ns)
{
	struct pollfd fds[] = {
	    {.fd = events->signal_fd, .events = POLLIN},
	    {.fd = events->target_ended ? -1 : events->target_fd, .events = POLLIN},
	};
	const int64_t left_ns = events->served ? 0 : deadline_ns - clock_now_ns();
	const struct timespec timeout = clock_timespec(left_ns > 0 ? left_ns : 0);

	events->child |= events->served;
	events->served = false;
	if (ppoll(fds, 2, &timeout, NULL) <= 0)
		return;
	if (fds[1].revents & (POLLIN | POLLHUP))
		events->target_ended = true;
	if (fds[0].revents)
		read_signals(events);
}

bool events_child_came(struct events *events)
{
	read_signals(events);
	const bool came = events->child || events->served;
	events->child = events->served = false;
	return came;
}

void events_note_served(struct events *events)
{
	events->served = true;
}

void events_restore(const struct events *events, const struct origin *origin)
{
	if (origin->group != 0)
		setpgid(0, origin->group);
	sigaction(SIGCHLD, &origin->child, NULL);
	sigaction(SIGPIPE, &events->original_pipe, NULL);
	sigaction(SIGXFSZ, &events->original_xfsz, NULL);
	sigprocmask(SIG_SETMASK, &origin->kept.mask, NULL);
}

void events_deinit(struct events *events, bool unblocks)
{
	sigset_t set;

	fill_signals(&set);
	sigdelset(&set, SIGCHLD); // it belongs to tracee
	sigdelset(&set, SIGUSR1); // it comes too late, and is not a reason to end
	prctl(PR_SET_PDEATHSIG, 0);
	read_signals(events);
	close(events->signal_fd);
	if (events->target_fd >= 0)
		close(events->target_fd);
	if (unblocks)
		sigprocmask(SIG_UNBLOCK, &set, NULL);
}

// SPDX-License-Identifier: MIT
// top_signals: the signals that top awaits, in a descriptor: its own, and what it owes others as a
// container's first process (first_process.h).
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "first_process.h"

struct top_live;

struct top_signals {
	int fd;        // -1: none yet
	sigset_t mask; // of signals, as top found it
	sigset_t own;  // what is not SIGCHLD, nor from outside for the command
	sigset_t awaited;
	struct first_process first;
	bool has_passed; // a signal from outside: whichever it is may be a container's stop signal
};

// Blocks them, and those that tell of writes, which fail as well. Call it before anything is begun
// that such a signal would leave behind.
void top_signals_block(struct top_signals *signals, bool has_screen, bool wraps);

// Opens the descriptor, to be closed by the caller.
void top_signals_await(struct top_signals *signals);

// Reads the next one that is top's own, without waiting. Passes on what is the command's, and reaps
// others' orphans, but neither the sampler nor the child `saver`. False: there is none.
bool top_signals_next(struct top_signals *signals, struct top_live *live, pid_t saver,
                      struct signalfd_siginfo *ret);

// How long may be waited for the next one, as for poll(2): -1, without end, except where one is
// still to be passed on.
int top_signals_wait_ms(struct top_signals *signals);

// Stops as Ctrl-Z does; goes on when the shell lets it.
void top_signals_stop_here(void);

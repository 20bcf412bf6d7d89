// SPDX-License-Identifier: MIT
// signal_timer: sends this process a signal when time is up.
//
// A timer of timer_create(2) has a signal of our own choice, but takes a place among the user's
// queued signals (RLIMIT_SIGPENDING: ulimit -i). Where there is none left, one of setitimer(2)
// stands in for it, which needs none, and has a signal of its own.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct signal_timer {
	int signal;  // what it sends
	pid_t owner; // whose it is: a fork's child has none
	bool is_interval;
	int which; // of setitimer(2)
	timer_t id;
};

// Makes a timer that sends `signal`, and does not run yet. What may stand in for it is the timer
// `which` of setitimer(2), with a clock that is about the same: it tells apart neither threads
// nor, where it is ITIMER_VIRTUAL, what the kernel does for them. Set the handler for ret->signal
// then.
void signal_timer_create(clockid_t clock, int signal, int which, struct signal_timer *ret);

// Sends the first signal after first_ns, and one each then_ns from there on; 0: none.
void signal_timer_set(const struct signal_timer *timer, int64_t first_ns, int64_t then_ns);

// True if a timer has sent it, and not another process.
bool signal_timer_has_sent(const siginfo_t *info);

// SPDX-License-Identifier: MIT
// push_counts: counts what became of windows, in memory that the uploader shares with the sampler.
// It can be read at any time without waiting.
#pragma once

#include <stdint.h>

enum push_drop {
	PUSH_REFUSED,    // the server says that the window is wrong
	PUSH_POISON,     // the server fails at it again and again, but takes others
	PUSH_EVICTED,    // the spool was full
	PUSH_TOO_LARGE,  // a single sample is larger than the server takes
	PUSH_UNREADABLE, // the file is not a profile
	N_PUSH_DROPS,
};

// Returns the reason as a word, such as "refused".
const char *push_drop_name(enum push_drop drop);

struct push_counts {
	_Atomic uint64_t sent_windows, sent_samples; // windows count when all of them was sent
	_Atomic uint64_t dropped_windows, dropped_samples[N_PUSH_DROPS];
	// Sent once more, as nobody knows whether the first request arrived.
	_Atomic uint64_t maybe_twice_samples;
	_Atomic uint64_t requests, retries;
	_Atomic uint64_t spool_windows, spool_bytes; // at the last look
	_Atomic int64_t oldest_ns;       // of the windows that wait, CLOCK_REALTIME; 0: none
	_Atomic int64_t last_success_ns; // CLOCK_REALTIME; 0: none
	_Atomic int64_t ending_ns; // when waiting for the end began, CLOCK_MONOTONIC; 0: not yet
};

// SPDX-License-Identifier: MIT
// push_counts: what became of windows, in memory that the uploader shares with who samples: read at
// any time, without waiting.
#pragma once

#include <stdint.h>

enum push_drop {
	PUSH_REFUSED,    // the server says that the window is wrong
	PUSH_POISON,     // the server fails at it, again and again, and takes others
	PUSH_TOO_OLD,    // the server takes none of that age
	PUSH_EVICTED,    // the spool was full
	PUSH_TOO_LARGE,  // samples that alone are more than the server takes
	PUSH_UNREADABLE, // no profile
	N_PUSH_DROPS,
};

// A word, such as "refused".
const char *push_drop_name(enum push_drop drop);

struct push_counts {
	_Atomic uint64_t sent_windows, sent_samples; // windows: those that were sent whole
	_Atomic uint64_t dropped_windows, dropped_samples[N_PUSH_DROPS];
	_Atomic uint64_t
	    maybe_twice_samples; // sent again, as nobody knows what became of them before
	_Atomic uint64_t requests, retries;
	_Atomic uint64_t spool_windows, spool_bytes; // at the last look
	_Atomic int64_t oldest_ns;                   // CLOCK_REALTIME of what waits; 0: nothing
	_Atomic int64_t last_success_ns;             // CLOCK_REALTIME; 0: none
	_Atomic int64_t sampling_over; // windows that cannot be written are not tried again
	_Atomic int64_t ending_ns; // since when the end is awaited, CLOCK_MONOTONIC; 0: it is not
};

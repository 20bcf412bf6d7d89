// SPDX-License-Identifier: MIT
// java_replay: reads at once what was read one after the other the last time.
//
// What a thread waits for is found by following pointers, and each read takes two system calls or
// more. A thread mostly waits for the same as the last time. So all that was read for it then is
// read again in one call, and used as long as the same places are asked for in the same order.
// After that, each read is made when it is asked for.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resident.h"

enum {
	JAVA_REPLAY_THREADS = 1024,
	JAVA_REPLAY_PLACES = 96,  // that are kept of a thread
	JAVA_REPLAY_BYTES = 4096, // of them all
};

struct java_place {
	uint64_t address;
	size_t size;
};

// What was read for a thread, in that order.
struct java_places {
	int tid;
	size_t n;
	struct java_place *items;
};

// Zero is empty.
struct java_replay {
	struct java_places threads[JAVA_REPLAY_THREADS]; // by tid
	struct java_places *thread;                      // for which is read now
	struct java_place places[JAVA_REPLAY_PLACES];    // that were asked for since
	size_t n, n_bytes;
	bool is_full;
	struct resident_block blocks[JAVA_REPLAY_PLACES]; // that were read at the beginning
	size_t n_blocks;                                  // 0: none, or another place was asked for
	uint8_t bytes[JAVA_REPLAY_BYTES];
};

void java_replay_deinit(struct java_replay *replay);

// Begins to read for the thread `tid`; `live_tid` is any thread of the process.
void java_replay_begin(struct java_replay *replay, struct resident *resident, int live_tid,
                       int tid);

// Reads like resident_read_often, what was read at the beginning where that is possible.
void java_replay_read(struct java_replay *replay, struct resident *resident, int tid,
                      struct resident_block *blocks, size_t n);

// Keeps what was asked for, for the next time.
void java_replay_end(struct java_replay *replay);

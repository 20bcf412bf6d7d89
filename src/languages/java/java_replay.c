// SPDX-License-Identifier: MIT
#include "java_replay.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

void java_replay_deinit(struct java_replay *replay)
{
	for (size_t i = 0; i < array_size(replay->threads); i++)
		free(replay->threads[i].items);
	*replay = (struct java_replay){0};
}

void java_replay_begin(struct java_replay *replay, struct resident *resident, int live_tid, int tid)
{
	struct java_places *thread = &replay->threads[(size_t)tid % array_size(replay->threads)];
	uint8_t *bytes = replay->bytes;

	if (thread->tid != tid)
		thread->n = 0;
	thread->tid = tid;
	for (size_t i = 0; i < thread->n; bytes += thread->items[i++].size)
		replay->blocks[i] = (struct resident_block){thread->items[i].address, bytes,
		                                            thread->items[i].size, false};
	resident_read_often(resident, live_tid, replay->blocks, thread->n);
	replay->thread = thread;
	replay->n_blocks = thread->n;
	replay->n = replay->n_bytes = 0;
	replay->is_full = false;
}

// False if this is not what was read at the beginning.
static bool read_again(const struct java_replay *replay, const struct resident_block *blocks,
                       size_t n)
{
	const struct resident_block *had = replay->blocks + replay->n;

	if (replay->n + n > replay->n_blocks)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!had[i].is_read || had[i].address != blocks[i].address ||
		    had[i].size != blocks[i].size)
			return false;
	return true;
}

static void note(struct java_replay *replay, const struct resident_block *block)
{
	if (replay->n == array_size(replay->places) ||
	    block->size > sizeof(replay->bytes) - replay->n_bytes)
		replay->is_full = true;
	if (replay->is_full)
		return;
	replay->places[replay->n++] = (struct java_place){block->address, block->size};
	replay->n_bytes += block->size;
}

void java_replay_read(struct java_replay *replay, struct resident *resident, int tid,
                      struct resident_block *blocks, size_t n)
{
	if (read_again(replay, blocks, n)) {
		for (size_t i = 0; i < n; i++) {
			memcpy(blocks[i].bytes, replay->blocks[replay->n + i].bytes,
			       blocks[i].size);
			blocks[i].is_read = true;
		}
	} else {
		replay->n_blocks = 0;
		resident_read_often(resident, tid, blocks, n);
	}
	for (size_t i = 0; i < n; i++)
		note(replay, &blocks[i]);
}

void java_replay_end(struct java_replay *replay)
{
	struct java_places *thread = replay->thread;
	const size_t bytes = replay->n * sizeof(*replay->places);

	if (replay->n_blocks == 0 && replay->n > 0) {
		free(thread->items);
		thread->items = memcpy(memory_alloc(bytes), replay->places, bytes);
	}
	thread->n = replay->n;
}

// SPDX-License-Identifier: MIT
#include "dump_goroutines.h"

#include <string.h>

#include "dump.h"
#include "dump_problems.h"
#include "memory.h"
#include "peer_end.h"

// True if the pipe or socket is written to.
static void note_way(void *context, const struct dump_frame *frame)
{
	bool *is_written = context;

	*is_written |= strcmp(frame->name, "internal/poll.(*pollDesc).waitWrite") == 0;
}

static bool find_wanted(const struct dump *dump, const struct dump_thread *thread,
                        struct peer_wanted *ret)
{
	const struct thread *entry = dump_thread_of(dump, thread);
	const uint32_t wait = dump->profile->samples[thread->sample].wait;

	*ret = (struct peer_wanted){.pid = entry->pid, .tid = entry->pid};
	if (!entry->is_goroutine || thread->holder || wait == WAIT_NONE ||
	    !dump->profile->waits[wait].reason[0] ||
	    !peer_end_parse(dump->profile->waits[wait].descriptor, &ret->inode, &ret->is_socket))
		return false;
	dump_frames(dump, thread->sample, note_way, &ret->is_written);
	return true;
}

void dump_goroutines_find_peers(struct dump *dump)
{
	_cleanup_free_ struct peer_wanted *wanted =
	    memory_alloc_zeroed(dump->n_threads + 1, sizeof(*wanted));
	_cleanup_free_ struct dump_thread **waiters =
	    memory_alloc_zeroed(dump->n_threads + 1, sizeof(struct dump_thread *));
	size_t n = 0;

	for (size_t i = 0; i < dump->n_threads; i++)
		if (find_wanted(dump, &dump->threads[i], &wanted[n]))
			waiters[n++] = &dump->threads[i];
	if (n > 0)
		peer_end_find(wanted, n, NULL, 0);
	for (size_t i = 0; i < n; i++)
		if (wanted[i].n_pids > 0)
			waiters[i]->holder = dump_peers_text(dump, &wanted[i]);
}

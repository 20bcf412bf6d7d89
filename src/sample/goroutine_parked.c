// SPDX-License-Identifier: MIT
#include "goroutine_parked.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "go_program.h"
#include "go_waits.h"
#include "goroutine_copies.h"
#include "goroutine_table.h"
#include "goroutine_time.h"
#include "run_stats.h"
#include "snapshot.h"
#include "target.h"
#include "tick.h"
#include "tick_unwind.h"

enum { MAX_COPIES = 4 }; // of a goroutine that moves

struct go_memory goroutine_memory(const struct ticker *ticker)
{
	return (struct go_memory){target_live_tid(ticker->target), &ticker->target->resident};
}

// Returns why it waits, and for what (wait_reasons.h).
static uint32_t wait_of(struct ticker *ticker, const struct goroutine_entry *entry,
                        const struct go_wait *wait)
{
	const char *reason = goroutine_reason(&ticker->goroutines.program, &entry->seen);
	char object[64] = "";

	if (wait->descriptor != GO_NO_DESCRIPTOR)
		return wait_reasons_of_reason(&ticker->waits, ticker->target, reason,
		                              wait->descriptor);
	if (wait->what)
		snprintf(object, sizeof(object), "%s 0x%" PRIx64, wait->what, wait->address);
	if (wait->what && wait->n_more)
		snprintf(object + strlen(object), sizeof(object) - strlen(object), " +%zu",
		         wait->n_more);
	return profile_intern_reason(ticker->profile, reason, object);
}

// False for a goroutine that is switched to without the scheduler, or was stopped in the middle of
// its work: its structure may say the same while it is at another place.
static bool may_be_kept(const struct goroutine_samples *samples, const struct goroutine *seen)
{
	const char *reason = goroutine_reason(&samples->program, seen);

	return seen->has_seq &&
	       (seen->status == GOROUTINE_RUNNABLE ||
	        (seen->status == GOROUTINE_WAITING && strcmp(reason, "coroutine") != 0 &&
	         strcmp(reason, "preempted") != 0));
}

// One that a thread of C has called keeps that thread, which waits for it: a language's runtime may
// have frames of it below Go's, which are C's.
static void merge_runtimes(struct ticker *ticker, const struct goroutine_entry *entry,
                           const struct target_thread *thread, struct snapshot *snapshot,
                           struct unwound *unwound)
{
	const struct go_memory memory = goroutine_memory(ticker);
	const struct snapshot_mark mark = snapshot_buffer_mark(ticker->buffer);
	struct goroutine now;

	tick_read_runtimes(ticker, thread->tid, snapshot);
	if (goroutine_read(&ticker->goroutines.program, &memory, entry->seen.address, &now) &&
	    goroutine_is_as(&now, &entry->seen))
		tick_merge(ticker, thread->tid, snapshot, unwound);
	snapshot_buffer_take_back(ticker->buffer, &mark);
}

// Interns its stack, or why there is none.
static uint32_t stack_of(struct ticker *ticker, struct goroutine_entry *entry,
                         struct goroutine_copied *copied)
{
	struct snapshot *snapshot = &copied->snapshot;
	struct unwound unwound;

	if (copied->result == GOROUTINE_UNREADABLE) {
		ticker->stats->goroutines.unreadable++;
		return profile_intern_stack(ticker->profile, NULL, 0, STACK_NOT_SAMPLED, 0);
	}
	tick_walk(ticker, snapshot, &unwound);
	if (unwound.end == STACK_SWITCHED && copied->thread.m != 0) {
		copied->thread.m = 0; // walk past C's frames, as the runtime does
		tick_walk(ticker, snapshot, &unwound);
	}
	const struct target_thread *thread =
	    entry->seen.locked_m ? goroutine_samples_find_thread(ticker, entry->seen.locked_m)
	                         : NULL;
	if (thread)
		goroutine_name_after(ticker, entry, thread);
	if (thread && snapshot->n_regions > 1)
		merge_runtimes(ticker, entry, thread, snapshot, &unwound);
	return goroutine_intern(ticker, entry, &unwound);
}

bool goroutine_is_parked(const struct goroutine *seen)
{
	return seen->m == 0 &&
	       (seen->status == GOROUTINE_RUNNABLE || seen->status == GOROUTINE_WAITING ||
	        seen->status == GOROUTINE_LEAKED || seen->status == GOROUTINE_PREEMPTED);
}

static void count(struct ticker *ticker, struct goroutine_entry *entry,
                  struct goroutine_copied *copied)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	// A page may be on the move just when it is to be read: try once more, at the next look.
	const bool tries_again = copied->labels_lack && !entry->lacks_labels;

	entry->lacks_labels = copied->labels_lack;
	if (tries_again && entry->is_sampled)
		return;
	const uint32_t stack = stack_of(ticker, entry, copied);
	ticker->stats->goroutines.copied++;
	goroutine_label(ticker, entry, copied->labels,
	                copied->labels_lack ? GOROUTINE_LABELS_UNREADABLE : NULL);
	entry->holds = may_be_kept(samples, &entry->seen) && !tries_again;
	entry->state =
	    entry->seen.status == GOROUTINE_WAITING || entry->seen.status == GOROUTINE_LEAKED
	        ? THREAD_SLEEPING
	        : THREAD_RUNNABLE;
	ticker->profile->threads[entry->thread].waits_since_ns = entry->seen.since_ns;
	entry->wait =
	    entry->state == THREAD_SLEEPING ? wait_of(ticker, entry, &copied->wait) : WAIT_NONE;
	if (ticker->accounting.priming) {
		entry->stack = stack;
		entry->has_stack = true;
		entry->is_active = false;
	} else if (goroutine_count(ticker, entry, stack, samples->tick,
	                           ticker->accounting.now_ns)) {
		entry->is_active = false;
	} else {
		entry->holds = false; // it ran in this tick: read it again in the next one
	}
}

static void count_result(struct ticker *ticker, struct goroutine_entry *entry,
                         struct goroutine_copied *copied)
{
	if (copied->result == GOROUTINE_COPIED || copied->result == GOROUTINE_UNREADABLE) {
		count(ticker, entry, copied);
		return;
	}
	if (copied->result == GOROUTINE_ENDED) {
		ticker->stats->goroutines.ended += !entry->is_sampled;
		goroutine_end(ticker, entry);
	} else { // its structure is another one's, perhaps, but not filled in yet
		ticker->stats->goroutines.moved++;
		goroutine_samples_attend(&ticker->goroutines, entry);
	}
}

// Copies one by itself, which takes so little time that it seldom moves meanwhile.
static void count_alone(struct ticker *ticker, struct goroutine_entry *entry)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	const struct go_memory memory = goroutine_memory(ticker);
	struct goroutine_copies *copies = &samples->copy;

	for (int i = 0; i < MAX_COPIES; i++) {
		if (!goroutine_is_parked(&entry->seen)) {
			goroutine_samples_attend(samples, entry);
			return; // counted when it is seen next
		}
		goroutine_copies_clear(copies);
		goroutine_copies_add(copies, &entry->seen, 0);
		goroutine_copies_make(copies, &samples->program, &memory);
		struct goroutine_copied *copied = &copies->items[0];
		if (copied->result != GOROUTINE_MOVED) {
			count_result(ticker, entry, copied);
			return;
		}
		entry->seen = copied->now;
	}
	goroutine_samples_attend(samples, entry);
	ticker->stats->goroutines.moved++;
}

void goroutine_count_copied(struct ticker *ticker)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	struct goroutine_copies *copies = &samples->copies;
	const struct go_memory memory = goroutine_memory(ticker);

	if (copies->count > 0)
		goroutine_copies_make(copies, &samples->program, &memory);
	for (size_t i = 0; i < copies->count; i++) {
		struct goroutine_copied *copied = &copies->items[i];
		// A thread that has stopped meanwhile may be seen to run it.
		target_attend(ticker->target, i);
		struct goroutine_entry *entry = &samples->table.entries[copied->id];
		if (!entry->is_alive || entry->thread == GOROUTINE_NONE ||
		    !goroutine_is_as(&entry->seen, &copied->goroutine))
			continue;
		if (copied->result == GOROUTINE_MOVED) {
			entry->seen = copied->now;
			count_alone(ticker, entry);
		} else {
			count_result(ticker, entry, copied);
		}
	}
	goroutine_copies_clear(copies);
}

void goroutine_count_parked(struct ticker *ticker, struct goroutine_entry *entry,
                            const struct goroutine *goroutine)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	const uint32_t id = (uint32_t)(entry - samples->table.entries);

	if (entry->holds && goroutine_is_as(goroutine, &entry->seen)) {
		ticker->stats->goroutines.kept++;
		if (!ticker->accounting.priming)
			goroutine_count_as_before(ticker, entry, samples->tick,
			                          ticker->accounting.now_ns);
		return;
	}
	entry->seen = *goroutine;
	entry->holds = false;
	// Copying many together takes longer: it has to be sure that none comes back to the place.
	if (!may_be_kept(samples, goroutine)) {
		count_alone(ticker, entry);
	} else if (!goroutine_copies_add(&samples->copies, goroutine, id)) {
		goroutine_count_copied(ticker);
		goroutine_copies_add(&samples->copies, goroutine, id);
	}
}

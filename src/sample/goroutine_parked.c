// SPDX-License-Identifier: MIT
#include "goroutine_parked.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "go_program.h"
#include "go_waits.h"
#include "goroutine_table.h"
#include "goroutine_time.h"
#include "run_stats.h"
#include "target.h"
#include "tick.h"
#include "tick_unwind.h"

enum { MAX_COPIES = 4 }; // of a goroutine that moves

struct go_memory goroutine_memory(const struct ticker *ticker)
{
	return (struct go_memory){target_live_tid(ticker->target), &ticker->target->resident};
}

const char *goroutine_reason(const struct goroutine_samples *samples, const struct goroutine *seen)
{
	const char *reason =
	    seen->reason < GO_MAX_REASONS ? samples->program.reasons[seen->reason] : "";

	return reason[0] ? reason : "waiting";
}

// Returns why it waits, and for what (wait_reasons.h).
static uint32_t wait_of(struct ticker *ticker, const struct goroutine_entry *entry,
                        const struct go_wait *wait)
{
	const char *reason = goroutine_reason(&ticker->goroutines, &entry->seen);
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
	const char *reason = goroutine_reason(samples, seen);

	return seen->has_seq &&
	       (seen->status == GOROUTINE_RUNNABLE ||
	        (seen->status == GOROUTINE_WAITING && strcmp(reason, "coroutine") != 0 &&
	         strcmp(reason, "preempted") != 0));
}

// Finds what the goroutine waits for whose stack was copied. False if it has moved since.
static bool find_wait(const struct ticker *ticker, const struct goroutine *seen,
                      const struct snapshot *snapshot, struct go_wait *ret)
{
	const struct goroutine_samples *samples = &ticker->goroutines;
	const struct go_memory memory = goroutine_memory(ticker);
	struct goroutine now;

	*ret = (struct go_wait){.descriptor = GO_NO_DESCRIPTOR};
	if (seen->status != GOROUTINE_WAITING)
		return true;
	go_wait_find(&samples->program, &memory, seen, goroutine_reason(samples, seen), snapshot,
	             ret);
	return (!ret->what && ret->descriptor == GO_NO_DESCRIPTOR) ||
	       (goroutine_read(&samples->program, &memory, seen->address, &now) &&
	        goroutine_is_as(&now, seen));
}

// Takes its stack, or notes why there is none, and finds what it waits for. False if it kept
// moving, or is being run.
static bool take_stack(struct ticker *ticker, struct goroutine_entry *entry, uint32_t *ret,
                       struct go_wait *ret_wait)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	const struct go_memory memory = goroutine_memory(ticker);
	struct run_goroutines *figures = &ticker->stats->goroutines;
	struct snapshot snapshot;
	struct unwound unwound;

	*ret_wait = (struct go_wait){.descriptor = GO_NO_DESCRIPTOR};
	for (int i = 0; i < MAX_COPIES; i++) {
		const uint64_t goid = entry->seen.goid;
		enum goroutine_copy result = goroutine_copy(&samples->list, &samples->program,
		                                            &memory, &entry->seen, &snapshot);
		if (result == GOROUTINE_COPIED &&
		    !find_wait(ticker, &entry->seen, &snapshot, ret_wait))
			result = GOROUTINE_MOVED;
		switch (result) {
		case GOROUTINE_COPIED:
			tick_walk(ticker, &snapshot, &unwound);
			if (unwound.end == STACK_SWITCHED && snapshot.go.m != 0) {
				snapshot.go.m = 0; // walk past C's frames, as the runtime does
				tick_walk(ticker, &snapshot, &unwound);
			}
			*ret = goroutine_intern(ticker, entry, &unwound);
			return true;
		case GOROUTINE_UNREADABLE:
			figures->unreadable++;
			*ret = profile_intern_stack(ticker->profile, NULL, 0, STACK_NOT_SAMPLED, 0);
			return true;
		case GOROUTINE_MOVED:
			if (!goroutine_read(&samples->program, &memory, entry->seen.address,
			                    &entry->seen) ||
			    entry->seen.goid != goid || entry->seen.m != 0)
				return false;
		}
	}
	figures->moved++;
	return false;
}

bool goroutine_is_parked(const struct goroutine *seen)
{
	return seen->m == 0 &&
	       (seen->status == GOROUTINE_RUNNABLE || seen->status == GOROUTINE_WAITING ||
	        seen->status == GOROUTINE_LEAKED || seen->status == GOROUTINE_PREEMPTED);
}

void goroutine_count_parked(struct ticker *ticker, struct goroutine_entry *entry,
                            const struct goroutine *goroutine)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	const int64_t now_ns = ticker->accounting.now_ns;
	struct go_wait wait;
	uint32_t stack;

	if (entry->holds && goroutine_is_as(goroutine, &entry->seen)) {
		ticker->stats->goroutines.kept++;
		if (!ticker->accounting.priming)
			goroutine_count_as_before(ticker, entry, samples->tick, now_ns);
		return;
	}
	entry->seen = *goroutine;
	entry->holds = false;
	if (!take_stack(ticker, entry, &stack, &wait) || !goroutine_is_parked(&entry->seen))
		return; // counted when it is seen next
	ticker->stats->goroutines.copied++;
	goroutine_label(ticker, entry);
	entry->is_active = false;
	entry->holds = may_be_kept(samples, &entry->seen);
	entry->state =
	    entry->seen.status == GOROUTINE_WAITING || entry->seen.status == GOROUTINE_LEAKED
	        ? THREAD_SLEEPING
	        : THREAD_RUNNABLE;
	ticker->profile->threads[entry->thread].waits_since_ns = entry->seen.since_ns;
	entry->wait = entry->state == THREAD_SLEEPING ? wait_of(ticker, entry, &wait) : WAIT_NONE;
	if (ticker->accounting.priming) {
		entry->stack = stack;
		entry->has_stack = true;
	} else if (!goroutine_count(ticker, entry, stack, samples->tick, now_ns)) {
		entry->holds = false; // read it again in the next tick
	}
}

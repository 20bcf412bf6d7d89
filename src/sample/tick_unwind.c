// SPDX-License-Identifier: MIT
#include "tick_unwind.h"

#include "clock.h"
#include "held_time.h"
#include "labels.h"
#include "run_stats.h"
#include "snapshot.h"
#include "target.h"
#include "thread_info.h"
#include "tick.h"
#include "unwind_check.h"

// Reading the rules of new code may take long: others may stop meanwhile.
void tick_walk(struct ticker *ticker, const struct snapshot *snapshot, struct unwound *ret)
{
	struct held_time *hold = ticker->setup->hold;
	const bool begun = held_time_begin_work(hold);

	unwinder_unwind(&ticker->unwinder, snapshot, ret);
	held_time_end_work(hold, begun);
	tasks_note_walk(ticker);
}

void tick_read_runtimes(struct ticker *ticker, int tid, struct snapshot *snapshot)
{
	if (snapshot_buffer_has_room(ticker->buffer))
		runtimes_read(&ticker->runtimes, tid, ticker->buffer, snapshot);
}

void tick_merge(struct ticker *ticker, int tid, const struct snapshot *snapshot,
                struct unwound *ret)
{
	struct held_time *hold = ticker->setup->hold;
	const bool begun = held_time_begin_work(hold);

	runtimes_merge(&ticker->runtimes, tid, snapshot, ret);
	held_time_end_work(hold, begun);
}

void tick_update_space(struct ticker *ticker, int tid, bool force)
{
	struct held_time *hold = ticker->setup->hold;
	const bool begun = held_time_begin_work(hold);

	address_space_update(&ticker->space, tid, clock_now_ns(), force);
	const uint64_t program = ticker->space.start_stack;
	// The first one may have begun since the process's name was read: it counts as another one.
	if (ticker->target->resident.program != program) {
		process_title_forget(&ticker->target->title, ticker->accounting.now_ns);
		thread_info_note_exec(ticker->profile, ticker->target, ticker->accounting.now_ns);
	}
	resident_note_program(&ticker->target->resident, program);
	runtimes_update(&ticker->runtimes, tid, clock_now_ns());
	held_time_end_work(hold, begun);
}

// True if the stack may end at the root of a program that the process has begun since, or at a root
// that does not look like one.
static bool may_end_at_root(const struct unwound *stack)
{
	return stack->end == STACK_NO_RULE || stack->end == STACK_NO_RETURN;
}

// True if the walk may have ended there because the maps are not those of this moment: they also
// say how far a stack reaches.
static bool may_end_by_maps(enum stack_end end)
{
	switch (end) {
	case STACK_NO_RULE:
	case STACK_UNREADABLE:
	case STACK_NOT_COPIED:
	case STACK_NO_PROGRESS:
	case STACK_NO_RETURN:
		return true;
	default:
		return false;
	}
}

// Notes where the outermost frames of a whole stack begin: as many as are kept of a far deeper one.
static void learn_outer_frames(const struct ticker *ticker, struct target_thread *thread,
                               const struct snapshot *snapshot, const struct unwound *stack)
{
	const uint32_t n_outer = ticker->unwinder.huge_frames;
	const size_t first = stack->n > n_outer ? stack->n - n_outer : 0;

	snapshot_hint_whole(&thread->hint, snapshot, stack->sps[first], stack->base);
}

// Notes what the stack tells about where the thread's next copy has to look.
static void learn_for_next_copy(struct ticker *ticker, struct target_thread *thread,
                                const struct snapshot *snapshot, const struct unwound *stack)
{
	languages_learn(&ticker->unwinder, thread->tid, &thread->hint, stack);
	const bool is_cut =
	    stack->end == STACK_NOT_COPIED && snapshot_goes_on_at(snapshot, stack->missing);
	if (is_cut)
		snapshot_hint_grow(&thread->hint, snapshot);
	if (stack->end == STACK_TOO_DEEP)
		snapshot_hint_deep(&thread->hint, snapshot, stack->reached_sp, stack->last_sp);
	if (stack->end == STACK_COMPLETE)
		learn_outer_frames(ticker, thread, snapshot, stack);
	if (stack->end != STACK_COMPLETE && stack->end != STACK_TOO_DEEP)
		snapshot_hint_ended(&thread->hint, snapshot);
	if (stack->end == STACK_UNREADABLE) {
		thread->hint.misled |= thread->hint.base != 0; // it may have cut the copy
		thread->hint.base = 0;
	}
	snapshot_hint_others(&thread->hint, snapshot, is_cut ? 0 : stack->missing,
	                     stack->end == STACK_COMPLETE || stack->end == STACK_TOO_DEEP);
	snapshot_hint_base(&thread->hint, snapshot, stack->base);
}

static void unwind(struct ticker *ticker, struct target_thread *thread,
                   const struct snapshot *snapshot, struct unwound *ret)
{
	const uint32_t generation = ticker->space.generation;

	ticker->runtimes_known = true;
	if (ticker->space.is_foreign) {
		*ret = (struct unwound){.end = STACK_FOREIGN};
		return;
	}
	tick_walk(ticker, snapshot, ret);
	if (may_end_at_root(ret))
		address_space_note_exec(&ticker->space, thread->tid);
	if (ticker->space.stale && ticker->forced_ns != ticker->accounting.now_ns) {
		// An address in no mapping: perhaps the mapping has come since the tick began.
		ticker->forced_ns = ticker->accounting.now_ns;
		tick_update_space(ticker, thread->tid, true);
		if (ticker->space.generation != generation)
			tick_walk(ticker, snapshot, ret);
	}
	ticker->space.unsure |= may_end_by_maps(ret->end);
	if (ticker->stats->check)
		unwind_check_compare(ticker->stats->check, thread->tid, &ticker->unwinder, snapshot,
		                     ret);
	learn_for_next_copy(ticker, thread, snapshot, ret);
	ret->labels = LABELS_NONE;
	ticker->runtimes_known = runtimes_merge(&ticker->runtimes, thread->tid, snapshot, ret);
}

void tick_unwind(struct ticker *ticker, struct target_thread *thread,
                 const struct snapshot *snapshot, struct unwound *ret)
{
	struct held_time *hold = ticker->setup->hold;
	const bool begun = held_time_begin_work(hold);

	unwind(ticker, thread, snapshot, ret);
	held_time_end_work(hold, begun);
}

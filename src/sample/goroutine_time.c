// SPDX-License-Identifier: MIT
#include "goroutine_time.h"

#include <stdlib.h>
#include <string.h>

#include "go_labels.h"
#include "goroutine_parked.h"
#include "goroutine_table.h"
#include "labels.h"
#include "memory.h"
#include "run_stats.h"
#include "target.h"
#include "tick.h"

// Beyond this many subjects, those of goroutines that are gone serve others of the same kind: a
// program may make new ones without end.
enum { MANY_SUBJECTS = 1 << 16 };

void goroutine_end(struct ticker *ticker, struct goroutine_entry *entry)
{
	struct goroutine_samples *samples = &ticker->goroutines;

	if (entry->is_alive && entry->thread != GOROUTINE_NONE) {
		struct goroutine_kind *kind = &samples->table.kinds[entry->kind];
		if (samples->n_subjects < MANY_SUBJECTS) {
			profile_end_thread(ticker->profile, entry->thread);
		} else {
			profile_end_span(ticker->profile, entry->thread);
			*array_push(kind->ended, kind->n_ended, kind->ended_capacity) =
			    entry->thread;
		}
	}
	entry->is_alive = false;
	entry->thread = GOROUTINE_NONE;
}

static uint32_t add_subject(struct ticker *ticker, struct goroutine_kind *kind, uint64_t goid,
                            int64_t from_ns)
{
	if (kind->n_ended > 0) {
		const uint32_t id = kind->ended[--kind->n_ended];
		profile_rename_thread(ticker->profile, id, kind->name);
		profile_reuse_goroutine(ticker->profile, id, from_ns);
		return id;
	}
	ticker->goroutines.n_subjects++;
	return profile_add_goroutine(ticker->profile, ticker->target->pid, goid, kind->name,
	                             from_ns);
}

// False for the runtime's own, except those that call the program's finalizers, while they do.
static bool is_shown(const struct goroutine_samples *samples, const struct goroutine_kind *kind,
                     const struct goroutine *goroutine)
{
	if (!kind->is_system || samples->shows_system)
		return true;
	if (!kind->calls_back || goroutine->status == GOROUTINE_IDLE)
		return false;
	if (goroutine->status != GOROUTINE_WAITING)
		return true;
	const char *reason = goroutine_reason(&samples->program, goroutine);
	return strcmp(reason, "finalizer wait") != 0 && strcmp(reason, "cleanup wait") != 0;
}

bool goroutine_is_another(const struct goroutine_samples *samples,
                          const struct goroutine_entry *entry, const struct goroutine *goroutine)
{
	const struct goroutine_kind *kind = &samples->table.kinds[entry->kind];

	return entry->seen.goid != goroutine->goid ||
	       (kind->calls_back &&
	        (entry->thread != GOROUTINE_NONE) != is_shown(samples, kind, goroutine));
}

void goroutine_begin(struct ticker *ticker, struct goroutine_entry *entry,
                     const struct goroutine *goroutine, uint64_t tick, int64_t from_ns)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	const uint32_t kind_id = goroutine_table_kind(&samples->table, goroutine, &samples->program,
	                                              &ticker->space, ticker->profile);
	struct goroutine_kind *kind = &samples->table.kinds[kind_id];

	if (from_ns < ticker->profile->start_ns)
		from_ns = ticker->profile->start_ns;
	*entry = (struct goroutine_entry){
	    .seen = *goroutine,
	    .kind = kind_id,
	    .thread = GOROUTINE_NONE,
	    .tick = tick > 0 ? tick - 1 : 0,
	    .is_alive = true,
	    .is_active = entry->is_active, // it is still on the list
	    .state = goroutine->m ? THREAD_RUNNING : THREAD_SLEEPING,
	};
	if (is_shown(samples, kind, goroutine))
		entry->thread = add_subject(ticker, kind, goroutine->goid, from_ns);
}

// Counts a sample of it, up to until_ns, for the ticks since it was last counted. False if there
// were none.
bool goroutine_count(struct ticker *ticker, struct goroutine_entry *entry, uint32_t stack,
                     uint64_t tick, int64_t until_ns)
{
	const uint64_t n = tick > entry->tick ? tick - entry->tick : 0;

	if (n == 0)
		return false;
	entry->sample = profile_count(ticker->profile, entry->thread, stack, entry->state,
	                              entry->wait, n, until_ns);
	entry->is_sampled = true;
	entry->tick = tick;
	ticker->stats->samples += n;
	return true;
}

bool goroutine_was_parked(const struct ticker *ticker, const struct goroutine_entry *entry)
{
	const struct profile *profile = ticker->profile;

	if (!entry->is_sampled)
		return entry->has_stack;
	const struct sample *last = &profile->samples[entry->sample];
	return last->state != THREAD_RUNNING &&
	       profile->stacks[last->stack].end != STACK_NOT_SAMPLED;
}

// Counts the ticks since it was last counted as its last sample, up to until_ns.
void goroutine_count_as_before(struct ticker *ticker, struct goroutine_entry *entry, uint64_t tick,
                               int64_t until_ns)
{
	if (goroutine_is_in_c(&entry->seen)) {
		profile_pass(ticker->profile, entry->thread, until_ns);
		entry->tick = tick > entry->tick ? tick : entry->tick;
	} else if (!entry->is_sampled && entry->has_stack) {
		goroutine_count(ticker, entry, entry->stack, tick, until_ns);
	} else if (!entry->is_sampled) {
		// All that is known is that no thread was seen to run it.
		entry->state = THREAD_SLEEPING;
		entry->wait = WAIT_NONE;
		goroutine_count(
		    ticker, entry,
		    profile_intern_stack(ticker->profile, NULL, 0, STACK_NOT_SAMPLED, 0), tick,
		    until_ns);
	} else if (tick > entry->tick) {
		profile_count_again(ticker->profile, entry->sample, tick - entry->tick, until_ns);
		ticker->stats->samples += tick - entry->tick;
		entry->tick = tick;
	}
}

bool goroutine_is_counted(const struct ticker *ticker, const struct goroutine_entry *entry,
                          int64_t until_ns)
{
	return ticker->profile->threads[entry->thread].last_ns >= until_ns && entry->is_sampled;
}

void goroutine_label(struct ticker *ticker, struct goroutine_entry *entry, const char *labels,
                     const char *lack)
{
	_cleanup_free_ char *text = NULL;

	if (entry->seen.locked_m)
		labels_add(&text, "locked", "yes");
	if (lack)
		labels_add(&text, LABELS_LACK, lack);
	_cleanup_free_ char *both = text && labels ? memory_printf("%s%s", text, labels) : NULL;
	const char *all = both ? both : text ? text : labels;
	profile_label_thread(ticker->profile, entry->thread,
	                     profile_intern_labels(ticker->profile, all));
}

void goroutine_label_running(struct ticker *ticker, struct goroutine_entry *entry)
{
	const struct go_program *program = &ticker->goroutines.program;
	const struct go_memory memory = goroutine_memory(ticker);
	const struct goroutine *seen = &entry->seen;
	_cleanup_free_ char *text = NULL;
	struct goroutine now;

	if (!go_labels_read(program, &memory, seen->labels, &text))
		goroutine_label(ticker, entry, NULL, GOROUTINE_LABELS_UNREADABLE);
	else if (seen->labels != 0 && (!goroutine_read(program, &memory, seen->address, &now) ||
	                               now.goid != seen->goid || now.labels != seen->labels))
		goroutine_label(ticker, entry, NULL, "replaced before they were read");
	else
		goroutine_label(ticker, entry, text, NULL);
}

void goroutine_name_after(struct ticker *ticker, const struct goroutine_entry *entry,
                          const struct target_thread *thread)
{
	const struct goroutine_kind *kind = &ticker->goroutines.table.kinds[entry->kind];
	struct profile *profile = ticker->profile;

	if (kind->start_pc == 0 && entry->thread != GOROUTINE_NONE)
		profile_rename_thread(profile, entry->thread,
		                      profile->threads[thread->account.own].name);
}

uint32_t goroutine_intern(struct ticker *ticker, struct goroutine_entry *entry,
                          const struct unwound *unwound)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	struct goroutine_kind *kind = &samples->table.kinds[entry->kind];
	const size_t n = unwound->n;

	if (unwound->end == STACK_COMPLETE && kind->start_pc != 0) {
		goroutine_table_name(&samples->table, entry->kind, &samples->program,
		                     ticker->profile, unwound->locations, n);
		// Others of its kind may have got their names before.
		profile_rename_thread(ticker->profile, entry->thread, kind->name);
	}
	if (unwound->end != STACK_COMPLETE || kind->creator == GOROUTINE_NONE ||
	    samples->no_creators || n == 0)
		return profile_intern_stack(ticker->profile, unwound->locations, n, unwound->end,
		                            unwound->guessed);
	_cleanup_free_ uint32_t *ids = memory_alloc((n + 1) * sizeof(*ids));
	memcpy(ids, unwound->locations, n * sizeof(*ids));
	ids[n] = kind->creator;
	return profile_intern_stack(ticker->profile, ids, n + 1, unwound->end, unwound->guessed);
}

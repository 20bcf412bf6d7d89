// SPDX-License-Identifier: MIT
#include "goroutine_samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "go_stacks.h"
#include "goroutine_look.h"
#include "goroutine_parked.h"
#include "goroutine_time.h"
#include "labels.h"
#include "memory.h"
#include "module.h"
#include "proc.h"
#include "rule_cache.h"
#include "run_stats.h"
#include "sleeper.h"
#include "target.h"
#include "tick.h"
#include "tick_unwind.h"

enum {
	MAX_TRIES = 12, // to find the runtime's list; the pauses between them grow
	MAX_THREADS = 1 << 16,
};

void goroutine_samples_init(struct goroutine_samples *samples, bool wanted, bool shows_system,
                            bool no_creators)
{
	*samples = (struct goroutine_samples){
	    .wanted = wanted,
	    .shows_system = shows_system,
	    .no_creators = no_creators,
	};
}

void goroutine_samples_deinit(struct goroutine_samples *samples)
{
	go_program_deinit(&samples->program);
	goroutine_list_deinit(&samples->list);
	goroutine_copies_deinit(&samples->copies);
	goroutine_copies_deinit(&samples->copy);
	goroutine_table_deinit(&samples->table);
	hash_index_deinit(&samples->threads_index);
	free(samples->threads);
	free(samples->active);
	*samples = (struct goroutine_samples){0};
}

// Returns the goroutine that the thread's sample is of; NULL: it is the thread's own.
static struct goroutine_entry *entry_of(const struct goroutine_samples *samples,
                                        const struct account *account)
{
	return account->goroutine ? &samples->table.entries[account->goroutine - 1] : NULL;
}

// --- Which thread runs which goroutine

static bool number_equal(const void *context, uint32_t id, const void *key)
{
	return ((const uint64_t *)context)[id] == *(const uint64_t *)key;
}

// Returns the thread's number as the target numbers its threads.
static uint64_t own_number(const struct goroutine_samples *samples,
                           const struct target_thread *thread)
{
	struct proc_status status;

	if (!samples->numbers_differ)
		return (uint64_t)thread->tid;
	return proc_read_status(thread->tid, &status) ? (uint64_t)status.ns_pid : 0;
}

void goroutine_samples_note_thread(struct ticker *ticker, uint64_t m)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	const struct go_memory memory = goroutine_memory(ticker);
	const uint64_t hash = hash_mix(m, 0);
	uint64_t tid, g;

	if (hash_index_find(&samples->threads_index, hash, number_equal, samples->threads, &m) !=
	        HASH_NONE ||
	    samples->n_threads == MAX_THREADS ||
	    !goroutine_thread(&samples->program, &memory, m, &tid, &g) || tid == 0)
		return;
	for (size_t i = 0; i < ticker->target->n_threads; i++) {
		struct target_thread *thread = ticker->target->threads[i];
		if (own_number(samples, thread) != tid)
			continue;
		thread->go_m = m;
		// It may have slept since before that was known: look at it again.
		if (!thread->account.goroutine) {
			thread->sleep.asleep = false;
			ticker->all_asleep = false;
		}
		hash_index_insert(&samples->threads_index, hash, samples->n_threads);
		*array_push(samples->threads, samples->n_threads, samples->threads_capacity) = m;
	}
}

const struct target_thread *goroutine_samples_find_thread(struct ticker *ticker, uint64_t m)
{
	goroutine_samples_note_thread(ticker, m);
	for (size_t i = 0; i < ticker->target->n_threads; i++)
		if (ticker->target->threads[i]->go_m == m)
			return ticker->target->threads[i];
	return NULL;
}

// Finds the goroutine with which a sleeping thread went to sleep. False if there is none, or it has
// moved since.
static bool find_of_sleeper(struct ticker *ticker, const struct target_thread *thread,
                            struct goroutine *ret)
{
	const struct goroutine_samples *samples = &ticker->goroutines;
	const struct go_memory memory = goroutine_memory(ticker);
	uint64_t tid, g;

	return thread->go_m != 0 &&
	       goroutine_thread(&samples->program, &memory, thread->go_m, &tid, &g) &&
	       tid == own_number(samples, thread) && g != 0 &&
	       goroutine_read(&samples->program, &memory, g, ret) && ret->m == thread->go_m &&
	       goroutine_is_run(ret->status) && !goroutine_is_in_c(ret) &&
	       !sleeper_has_moved(ticker->target, thread);
}

// Finds the goroutine of a thread that was stopped, from its copy. Reads now what does not change
// in a goroutine's life.
static bool find_of_stopped(struct ticker *ticker, const struct snapshot *snapshot,
                            struct goroutine *ret)
{
	const struct goroutine_samples *samples = &ticker->goroutines;
	const struct go_memory memory = goroutine_memory(ticker);
	const struct go_thread *go = go_stacks_thread(snapshot);

	if (!go_thread_runs_goroutine(go) ||
	    !goroutine_read(&samples->program, &memory, go->goroutine.address, ret) ||
	    ret->goid != go->goid || goroutine_is_in_c(ret))
		return false;
	ret->labels = go->labels; // those at the stop: it may have others by now
	return true;
}

// Returns the entry of the goroutine that a thread runs; NULL: it is not shown.
static struct goroutine_entry *running_entry(struct ticker *ticker, const struct account *account,
                                             const struct goroutine *goroutine, uint64_t tick)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	struct goroutine_entry *entry = goroutine_table_get(&samples->table, goroutine->address);

	if (entry->is_alive && goroutine_is_another(samples, entry, goroutine))
		goroutine_end(ticker, entry);
	if (!entry->is_alive)
		goroutine_begin(ticker, entry, goroutine, tick, account->until_ns);
	entry->seen = *goroutine;
	entry->look = samples->look.number;
	return entry->thread == GOROUTINE_NONE ? NULL : entry;
}

// Has each tick look at it, until it is seen parked or gone.
static void attend(struct goroutine_samples *samples, struct goroutine_entry *entry)
{
	if (!entry->is_active)
		*array_push(samples->active, samples->n_active, samples->active_capacity) =
		    (uint32_t)(entry - samples->table.entries);
	entry->is_active = true;
}

void goroutine_samples_attend(struct goroutine_samples *samples, struct goroutine_entry *entry)
{
	if (!entry->is_sampled && !entry->has_stack)
		attend(samples, entry);
}

static void release(struct ticker *ticker, const struct target_thread *thread)
{
	struct goroutine_entry *entry = entry_of(&ticker->goroutines, &thread->account);

	if (entry && entry->bound_tid == thread->tid)
		entry->bound_tid = 0;
}

void goroutine_samples_unbind(struct ticker *ticker, struct target_thread *thread)
{
	struct account *account = &thread->account;

	if (account->goroutine)
		profile_pass(ticker->profile, account->own, account->until_ns);
	release(ticker, thread);
	account->thread = account->own;
	account->goroutine = 0;
}

// Returns the first of the ticks for which the thread's sample stands...
static uint64_t first_tick(const struct ticker *ticker, const struct target_thread *thread,
                           const struct snapshot *snapshot)
{
	return snapshot ? thread->account.asked_tick : ticker->goroutines.tick;
}

// ...and how many follow it.
static uint64_t pending_ticks(const struct account *account)
{
	uint64_t n = 0;

	for (size_t i = 0; i < account->n_pending_ticks; i++)
		n += account->pending_ticks[i].count;
	return n;
}

// Counts the ticks before the one in which the thread was seen to run the goroutine: until then it
// was as it was last seen parked. If it was last seen running, or never, all that is known is that
// it ran somewhere between two looks: what it is seen at next, which is now, stands for those
// ticks, too. But the samples of a thread of which no goroutine was known until now, as it slept
// (in C, say), may be those of this one already.
static void count_until_taken(struct ticker *ticker, const struct account *account,
                              struct goroutine_entry *entry, uint64_t tick)
{
	if (goroutine_was_parked(ticker, entry)) {
		if (account->until_ns > ticker->profile->threads[entry->thread].last_ns)
			goroutine_count_as_before(ticker, entry, tick - 1, account->until_ns);
	} else if (tick > entry->tick && (entry->is_sampled || account->goroutine)) {
		const uint64_t n = tick - 1 - entry->tick;
		ticker->goroutines.n_owed = n;
		// One that is new stands for those before it.
		ticker->stats->goroutines.moved += n > 0 && !entry->is_sampled ? 1 : n;
	}
}

void goroutine_samples_bind(struct ticker *ticker, struct target_thread *thread,
                            const struct snapshot *snapshot)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	struct account *account = &thread->account;
	const uint64_t tick = first_tick(ticker, thread, snapshot);
	struct goroutine_entry *entry = NULL, *before = entry_of(samples, account);
	struct goroutine goroutine = {0};

	samples->n_owed = 0;
	if (!samples->found)
		return;
	if (snapshot ? find_of_stopped(ticker, snapshot, &goroutine)
	             : find_of_sleeper(ticker, thread, &goroutine))
		entry = running_entry(ticker, account, &goroutine, tick);
	else if (before && before->seen.goid == goroutine.goid && goroutine_is_in_c(&goroutine))
		before->seen = goroutine; // the time of this sample is the thread's alone
	samples->shown = entry ? (uint32_t)(entry - samples->table.entries) + 1 : 0;
	// Another thread may have run it already in the same tick.
	if (!entry || (!ticker->accounting.priming && entry->tick >= tick)) {
		goroutine_samples_unbind(ticker, thread);
		return;
	}
	if (account->goroutine != samples->shown) {
		if (!ticker->accounting.priming)
			count_until_taken(ticker, account, entry, tick);
		release(ticker, thread);
	}
	goroutine_name_after(ticker, entry, thread);
	goroutine_label_running(ticker, entry);
	account->thread = entry->thread;
	account->goroutine = samples->shown;
	entry->bound_tid = thread->tid;
	if (!ticker->accounting.priming)
		entry->tick = tick + pending_ticks(account);
	entry->holds = false;
	attend(samples, entry);
}

void goroutine_samples_label(struct ticker *ticker, const struct target_thread *thread,
                             uint32_t labels)
{
	if (!thread->account.goroutine)
		profile_label_thread(ticker->profile, thread->account.thread, labels);
}

uint32_t goroutine_samples_stack(struct ticker *ticker, const struct unwound *unwound)
{
	struct goroutine_samples *samples = &ticker->goroutines;

	return samples->shown
	           ? goroutine_intern(ticker, &samples->table.entries[samples->shown - 1], unwound)
	           : profile_intern_stack(ticker->profile, unwound->locations, unwound->n,
	                                  unwound->end, unwound->guessed);
}

void goroutine_samples_pay(struct ticker *ticker, const struct account *account)
{
	struct goroutine_samples *samples = &ticker->goroutines;

	if (samples->n_owed == 0 || !account->goroutine || !account->sampled)
		return;
	// Its time up to now is that sample's already.
	profile_count_again(ticker->profile, account->sample, samples->n_owed,
	                    ticker->profile->threads[account->thread].last_ns);
	ticker->stats->samples += samples->n_owed;
	samples->n_owed = 0;
}

// --- The program

static void end_all(struct ticker *ticker)
{
	struct goroutine_samples *samples = &ticker->goroutines;

	for (size_t i = 0; i < samples->table.n_entries; i++)
		goroutine_end(ticker, &samples->table.entries[i]);
	for (size_t i = 0; i < ticker->target->n_threads; i++) {
		goroutine_samples_unbind(ticker, ticker->target->threads[i]);
		ticker->target->threads[i]->go_m = 0;
	}
	const struct goroutine_samples before = *samples;
	goroutine_samples_deinit(samples);
	goroutine_samples_init(samples, true, before.shows_system, before.no_creators);
	samples->tick = before.tick;
	samples->generation = before.generation;
	samples->n_rules = before.n_rules;
	samples->n_files = before.n_files;
}

static void note_program(struct ticker *ticker)
{
	const struct goroutine_samples *samples = &ticker->goroutines;
	struct run_goroutines *figures = &ticker->stats->goroutines;

	snprintf(figures->version, sizeof(figures->version), "%s", samples->program.version);
	figures->refused = samples->program.refused;
	figures->guessed_minor = samples->program.guessed_minor;
	figures->n_others = samples->program.n_others;
	const char *path = samples->program.other ? samples->program.other->path : "";
	const char *slash = strrchr(path, '/');
	snprintf(figures->other, sizeof(figures->other), "%s", slash ? slash + 1 : path);
}

static bool is_same(const struct go_program *a, const struct go_program *b)
{
	return a->module == b->module && a->bias == b->bias && a->list_length == b->list_length &&
	       !b->refused;
}

// True if the process has other code now, or if stacks have shown Go's code in another file:
// nothing else leads to a library whose goroutines are all parked.
static bool has_new_code(const struct ticker *ticker)
{
	const struct goroutine_samples *samples = &ticker->goroutines;

	return samples->generation != ticker->space.generation ||
	       (samples->n_rules != ticker->unwinder.rules->n_made &&
	        samples->n_files != go_program_count_files(&ticker->space));
}

// Looks for Go at first, and when code has come or gone; and again, at growing distances, while the
// runtime has not begun, or has not been found.
static void find_program(struct ticker *ticker)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	const struct go_memory memory = goroutine_memory(ticker);
	struct go_program program = {0};
	const bool is_new = has_new_code(ticker);

	samples->n_rules = ticker->unwinder.rules->n_made;
	if (is_new)
		samples->tries = 0;
	if (!is_new &&
	    (samples->found || samples->tick < samples->try_tick || samples->tries > MAX_TRIES))
		return;
	samples->try_tick = samples->tick + (UINT64_C(1) << samples->tries++);
	samples->generation = ticker->space.generation;
	samples->n_files = go_program_count_files(&ticker->space);
	const bool found = tick_find_go(ticker, &memory, &program);
	if (samples->found && found && is_same(&samples->program, &program)) {
		samples->program.n_others = program.n_others;
		samples->program.other = program.other;
		go_program_deinit(&program);
		note_program(ticker);
		return;
	}
	if (samples->found)
		end_all(ticker);
	go_program_deinit(&samples->program);
	samples->program = program;
	samples->found = found && !program.refused;
	if (!found)
		samples->tries = MAX_TRIES + 1;
	struct proc_status status;
	samples->numbers_differ =
	    proc_read_status(ticker->target->pid, &status) && status.has_own_pids;
	note_program(ticker);
	goroutine_samples_note_layout(ticker);
}

void goroutine_samples_note_layout(struct ticker *ticker)
{
	const struct goroutine_samples *samples = &ticker->goroutines;
	const struct go_offsets *offsets = &samples->program.offsets;
	const bool has_labels = samples->found && offsets->labels != GO_NO_FIELD;

	go_stacks_set_fields(&ticker->space, samples->found ? offsets->goid : 0,
	                     samples->found ? offsets->status : 0,
	                     has_labels ? offsets->labels : 0);
}

// --- Ticks

// Takes over what the threads' samples have counted for goroutines until now.
static void take_over(struct ticker *ticker)
{
	struct goroutine_samples *samples = &ticker->goroutines;

	for (size_t i = 0; i < ticker->target->n_threads; i++) {
		const struct account *account = &ticker->target->threads[i]->account;
		struct goroutine_entry *entry = entry_of(samples, account);
		if (!entry || !account->sampled || entry->thread != account->thread ||
		    account->until_ns < ticker->accounting.now_ns)
			continue;
		entry->tick = samples->tick;
		entry->sample = account->sample;
		entry->is_sampled = true;
	}
}

void goroutine_samples_begin(struct ticker *ticker, bool is_idle)
{
	struct goroutine_samples *samples = &ticker->goroutines;

	if (samples->found && !is_idle)
		take_over(ticker);
	samples->tick++;
}

void goroutine_samples_look(struct ticker *ticker)
{
	struct goroutine_samples *samples = &ticker->goroutines;

	if (!samples->wanted || ticker->space.is_foreign || target_live_tid(ticker->target) == 0)
		return;
	find_program(ticker);
	if (!samples->found)
		return;
	take_over(ticker);
	if (!goroutine_look_at_some(ticker) && ticker->setup->counts_at_once)
		goroutine_samples_settle(ticker, false);
}

void goroutine_samples_look_again(struct ticker *ticker)
{
	if (has_new_code(ticker))
		goroutine_samples_look(ticker);
}

bool goroutine_samples_is_looking(const struct ticker *ticker)
{
	return ticker->goroutines.found && ticker->goroutines.look.is_begun;
}

void goroutine_samples_settle(struct ticker *ticker, bool is_end)
{
	struct goroutine_samples *samples = &ticker->goroutines;
	const int64_t now_ns = ticker->accounting.now_ns;

	if (!samples->found)
		return;
	take_over(ticker);
	if (is_end && samples->look.number > 0 && target_live_tid(ticker->target) != 0)
		goroutine_look_at_last(ticker);
	for (size_t i = 0; i < samples->table.n_entries; i++) {
		struct goroutine_entry *entry = &samples->table.entries[i];
		// One that ran somewhere is counted with what it is seen at next, unless it is
		// never seen again.
		const bool may_count =
		    is_end || (!entry->bound_tid && (goroutine_was_parked(ticker, entry) ||
		                                     goroutine_is_in_c(&entry->seen)));
		if (entry->is_alive && entry->thread != GOROUTINE_NONE && may_count &&
		    !goroutine_is_counted(ticker, entry, now_ns))
			goroutine_count_as_before(ticker, entry, samples->tick, now_ns);
		target_attend(ticker->target, i);
	}
}

// SPDX-License-Identifier: MIT
#include "tasks.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "held_time.h"
#include "labels.h"
#include "language.h"
#include "memory.h"
#include "proc.h"
#include "rule_cache.h"
#include "run_stats.h"
#include "sleeper.h"
#include "target.h"
#include "tick.h"

enum {
	MAX_KINDS = 1 << 16,
	MAX_THREADS = 1 << 16,
	// Beyond this many subjects, those of tasks that are gone serve others of the same kind: a
	// program may make new ones without end.
	MANY_SUBJECTS = 1 << 16,
	MAX_COPIES = 4,    // of a task that moves
	LOOK_SHARE = 50,   // looks may take at most one part in this many of the time
	TICK_SHARE = 4,    // and such a part of a period in a tick
	CHECK_ONCE = 4096, // entries, between looks at the clock
	MAX_LAST_LOOKS = 4 // at those of which nothing is known but that they ran
};

#define FIRST_LOOK_NS (50 * NS_PER_MS) // before the first tick

static const int64_t NO_LIMIT = INT64_MAX;

// Why labels are lacking.
#define LABELS_UNREADABLE "unreadable, or more than 64"

void tasks_init(struct tasks *tasks, const struct runtimes_setup *setup, bool shows_system,
                bool no_creators)
{
	*tasks = (struct tasks){.shows_system = shows_system, .no_creators = no_creators};
	for (size_t i = 0; i < LANGUAGES_MAX && !tasks->ops; i++)
		if (languages[i] && (setup->kinds >> i & 1))
			tasks->ops = languages[i]->tasks;
	if (tasks->ops)
		tasks->runtime = tasks->ops->begin(setup);
}

// Frees what is known of the tasks.
static void forget(struct tasks *tasks)
{
	for (size_t i = 0; i < tasks->n_kinds; i++) {
		free(tasks->kinds[i].name);
		free(tasks->kinds[i].subjects);
	}
	free(tasks->kinds);
	free(tasks->entries);
	hash_index_deinit(&tasks->entry_index);
	hash_index_deinit(&tasks->kind_index);
	hash_index_deinit(&tasks->threads_index);
	free(tasks->threads);
	free(tasks->active);
}

void tasks_deinit(struct tasks *tasks)
{
	forget(tasks);
	if (tasks->ops)
		tasks->ops->end(tasks->runtime);
	*tasks = (struct tasks){0};
}

// --- What is known of them

static bool entry_equal(const void *context, uint32_t id, const void *key)
{
	const struct tasks *tasks = context;

	return tasks->entries[id].seen.address == *(const uint64_t *)key;
}

static struct task_entry *get_entry(struct tasks *tasks, uint64_t address)
{
	const uint64_t hash = hash_mix(address, 0);
	uint32_t id = hash_index_find(&tasks->entry_index, hash, entry_equal, tasks, &address);

	if (id != HASH_NONE)
		return &tasks->entries[id];
	id = tasks->n_entries;
	*array_push(tasks->entries, tasks->n_entries, tasks->entries_capacity) =
	    (struct task_entry){.seen.address = address, .thread = TASK_NONE};
	hash_index_insert(&tasks->entry_index, hash, id);
	return &tasks->entries[id];
}

static bool kind_equal(const void *context, uint32_t id, const void *key)
{
	const struct tasks *tasks = context;
	const struct task *task = key;

	return tasks->kinds[id].start_pc == task->start_pc &&
	       tasks->kinds[id].creator_pc == task->creator_pc;
}

// Returns the kind of the task, new or known.
static uint32_t get_kind(struct tasks *tasks, const struct task *task)
{
	const uint64_t hash = hash_mix(task->start_pc, task->creator_pc);
	uint32_t id = hash_index_find(&tasks->kind_index, hash, kind_equal, tasks, task);

	if (id != HASH_NONE)
		return id;
	if (tasks->n_kinds == 0)
		*array_push(tasks->kinds, tasks->n_kinds, tasks->kinds_capacity) =
		    (struct task_kind){.name = memory_strdup("")};
	if (tasks->n_kinds == MAX_KINDS)
		return 0; // nothing is known of it
	struct task_kind kind;
	tasks->ops->describe(tasks->runtime, task, &kind);
	id = tasks->n_kinds;
	*array_push(tasks->kinds, tasks->n_kinds, tasks->kinds_capacity) = kind;
	hash_index_insert(&tasks->kind_index, hash, id);
	return id;
}

// Gives a kind that lacks a name the one that the whole stack of such a task shows.
static void name_kind(const struct tasks *tasks, struct task_kind *kind,
                      const struct unwound *unwound)
{
	char *name = kind->lacks_name
	                 ? tasks->ops->name_by_stack(tasks->runtime, unwound->locations, unwound->n)
	                 : NULL;

	if (!name)
		return;
	free(kind->name);
	kind->name = name;
	kind->lacks_name = false;
}

static int live_tid(const struct ticker *ticker)
{
	return target_live_tid(ticker->target);
}

static bool read_task(const struct ticker *ticker, uint64_t address, struct task *ret)
{
	return ticker->tasks.ops->read(ticker->tasks.runtime, live_tid(ticker), address, ret);
}

static bool is_parked(const struct task *task)
{
	return task->state == TASK_READY || task->state == TASK_WAITING;
}

// --- One task in the profile: its birth, its samples, its end

static void end_task(struct ticker *ticker, struct task_entry *entry)
{
	struct tasks *tasks = &ticker->tasks;

	if (entry->is_alive && entry->thread != TASK_NONE) {
		struct task_kind *kind = &tasks->kinds[entry->kind];
		if (tasks->n_subjects < MANY_SUBJECTS) {
			profile_end_thread(ticker->profile, entry->thread);
		} else {
			profile_end_span(ticker->profile, entry->thread);
			*array_push(kind->subjects, kind->n_subjects, kind->subjects_capacity) =
			    entry->thread;
		}
	}
	entry->is_alive = false;
	entry->thread = TASK_NONE;
}

static uint32_t add_subject(struct ticker *ticker, struct task_kind *kind, uint64_t number,
                            int64_t from_ns)
{
	if (kind->n_subjects > 0) {
		const uint32_t id = kind->subjects[--kind->n_subjects];
		profile_rename_thread(ticker->profile, id, kind->name);
		profile_reuse_task(ticker->profile, id, from_ns);
		return id;
	}
	ticker->tasks.n_subjects++;
	return profile_add_task(ticker->profile, ticker->target->pid, number, kind->name, from_ns);
}

// False for the runtime's own, unless they do the program's work.
static bool is_shown(const struct tasks *tasks, const struct task_kind *kind,
                     const struct task *task)
{
	return !kind->is_runtimes || tasks->shows_system ||
	       (kind->may_be_shown && tasks->ops->is_programs(tasks->runtime, task));
}

// True if what was read is not the task that the entry, which is alive, belongs to any more; or if
// it is to be shown now and was not before, or the other way round.
static bool is_another(const struct tasks *tasks, const struct task_entry *entry,
                       const struct task *task)
{
	const struct task_kind *kind = &tasks->kinds[entry->kind];

	return entry->seen.id != task->id ||
	       (kind->may_be_shown && (entry->thread != TASK_NONE) != is_shown(tasks, kind, task));
}

static void begin_task(struct ticker *ticker, struct task_entry *entry, const struct task *task,
                       uint64_t tick, int64_t from_ns)
{
	struct tasks *tasks = &ticker->tasks;
	const uint32_t kind_id = get_kind(tasks, task);
	struct task_kind *kind = &tasks->kinds[kind_id];

	if (from_ns < ticker->profile->start_ns)
		from_ns = ticker->profile->start_ns;
	*entry = (struct task_entry){
	    .seen = *task,
	    .kind = kind_id,
	    .thread = TASK_NONE,
	    .tick = tick > 0 ? tick - 1 : 0,
	    .is_alive = true,
	    .is_active = entry->is_active, // it is still on the list
	    .state = task->runner ? THREAD_RUNNING : THREAD_SLEEPING,
	};
	if (is_shown(tasks, kind, task))
		entry->thread = add_subject(ticker, kind, task->id, from_ns);
}

// Counts a sample of it, up to until_ns, for the ticks since it was last counted. False if there
// were none.
static bool count_task(struct ticker *ticker, struct task_entry *entry, uint32_t stack,
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

static bool was_parked(const struct ticker *ticker, const struct task_entry *entry)
{
	const struct profile *profile = ticker->profile;

	if (!entry->is_sampled)
		return entry->has_stack;
	const struct sample *last = &profile->samples[entry->sample];
	return last->state != THREAD_RUNNING &&
	       profile->stacks[last->stack].end != STACK_NOT_SAMPLED;
}

// Counts the ticks since it was last counted as its last sample, up to until_ns.
static void count_as_before(struct ticker *ticker, struct task_entry *entry, uint64_t tick,
                            int64_t until_ns)
{
	if (entry->seen.state == TASK_OUTSIDE) {
		profile_pass(ticker->profile, entry->thread, until_ns);
		entry->tick = tick > entry->tick ? tick : entry->tick;
	} else if (!entry->is_sampled && entry->has_stack) {
		count_task(ticker, entry, entry->stack, tick, until_ns);
	} else if (!entry->is_sampled) {
		// All that is known is that no thread was seen to run it.
		entry->state = THREAD_SLEEPING;
		entry->wait = WAIT_NONE;
		count_task(ticker, entry,
		           profile_intern_stack(ticker->profile, NULL, 0, STACK_NOT_SAMPLED, 0),
		           tick, until_ns);
	} else if (tick > entry->tick) {
		profile_count_again(ticker->profile, entry->sample, tick - entry->tick, until_ns);
		ticker->stats->samples += tick - entry->tick;
		entry->tick = tick;
	}
}

static bool is_counted(const struct ticker *ticker, const struct task_entry *entry,
                       int64_t until_ns)
{
	return ticker->profile->threads[entry->thread].last_ns >= until_ns && entry->is_sampled;
}

static void label_task(struct ticker *ticker, struct task_entry *entry, const char *labels,
                       const char *lack)
{
	_cleanup_free_ char *text = NULL;

	if (entry->seen.only_runner)
		labels_add(&text, "locked", "yes");
	if (lack)
		labels_add(&text, LABELS_LACK, lack);
	_cleanup_free_ char *both = text && labels ? memory_printf("%s%s", text, labels) : NULL;
	const char *all = both ? both : text ? text : labels;
	profile_label_thread(ticker->profile, entry->thread,
	                     profile_intern_labels(ticker->profile, all));
}

static void label_running(struct ticker *ticker, struct task_entry *entry)
{
	const struct tasks *tasks = &ticker->tasks;
	const struct task *seen = &entry->seen;
	_cleanup_free_ char *text = NULL;
	struct task now;

	if (!tasks->ops->labels(tasks->runtime, live_tid(ticker), seen->labels, &text))
		label_task(ticker, entry, NULL, LABELS_UNREADABLE);
	else if (seen->labels != 0 && (!read_task(ticker, seen->address, &now) ||
	                               now.id != seen->id || now.labels != seen->labels))
		label_task(ticker, entry, NULL, "replaced before they were read");
	else
		label_task(ticker, entry, text, NULL);
}

static void name_after(struct ticker *ticker, const struct task_entry *entry,
                       const struct target_thread *thread)
{
	const struct task_kind *kind = &ticker->tasks.kinds[entry->kind];
	struct profile *profile = ticker->profile;

	if (kind->start_pc == 0 && entry->thread != TASK_NONE)
		profile_rename_thread(profile, entry->thread,
		                      profile->threads[thread->account.own].name);
}

static uint32_t intern_stack(struct ticker *ticker, struct task_entry *entry,
                             const struct unwound *unwound)
{
	struct tasks *tasks = &ticker->tasks;
	struct task_kind *kind = &tasks->kinds[entry->kind];
	const size_t n = unwound->n;

	if (unwound->end == STACK_COMPLETE && kind->start_pc != 0) {
		name_kind(tasks, kind, unwound);
		// Others of its kind may have got their names before.
		profile_rename_thread(ticker->profile, entry->thread, kind->name);
	}
	if (unwound->end != STACK_COMPLETE || !kind->has_creator || tasks->no_creators || n == 0)
		return profile_intern_stack(ticker->profile, unwound->locations, n, unwound->end,
		                            unwound->guessed);
	_cleanup_free_ uint32_t *ids = memory_alloc((n + 1) * sizeof(*ids));
	memcpy(ids, unwound->locations, n * sizeof(*ids));
	ids[n] = kind->creator;
	return profile_intern_stack(ticker->profile, ids, n + 1, unwound->end, unwound->guessed);
}

// --- Which thread runs which task

// Returns the task that the thread's sample is of; NULL: it is the thread's own.
static struct task_entry *entry_of(const struct tasks *tasks, const struct account *account)
{
	return account->task ? &tasks->entries[account->task - 1] : NULL;
}

static bool number_equal(const void *context, uint32_t id, const void *key)
{
	return ((const uint64_t *)context)[id] == *(const uint64_t *)key;
}

// Returns the thread's number as the target numbers its threads.
static uint64_t own_number(const struct tasks *tasks, const struct target_thread *thread)
{
	struct proc_status status;

	if (!tasks->numbers_differ)
		return (uint64_t)thread->tid;
	return proc_read_status(thread->tid, &status) ? (uint64_t)status.ns_pid : 0;
}

static void note_thread(struct ticker *ticker, uint64_t runner)
{
	struct tasks *tasks = &ticker->tasks;
	const uint64_t hash = hash_mix(runner, 0);
	uint64_t tid, address;

	if (hash_index_find(&tasks->threads_index, hash, number_equal, tasks->threads, &runner) !=
	        HASH_NONE ||
	    tasks->n_threads == MAX_THREADS ||
	    !tasks->ops->runner(tasks->runtime, live_tid(ticker), runner, &tid, &address) ||
	    tid == 0)
		return;
	for (size_t i = 0; i < ticker->target->n_threads; i++) {
		struct target_thread *thread = ticker->target->threads[i];
		if (own_number(tasks, thread) != tid)
			continue;
		thread->task_runner = runner;
		// It may have slept since before that was known: look at it again.
		if (!thread->account.task) {
			thread->sleep.asleep = false;
			ticker->all_asleep = false;
		}
		hash_index_insert(&tasks->threads_index, hash, tasks->n_threads);
		*array_push(tasks->threads, tasks->n_threads, tasks->threads_capacity) = runner;
	}
}

static const struct target_thread *find_thread(struct ticker *ticker, uint64_t runner)
{
	note_thread(ticker, runner);
	for (size_t i = 0; i < ticker->target->n_threads; i++)
		if (ticker->target->threads[i]->task_runner == runner)
			return ticker->target->threads[i];
	return NULL;
}

// Finds the task with which a sleeping thread went to sleep. False if there is none, or it has
// moved since.
static bool find_of_sleeper(struct ticker *ticker, const struct target_thread *thread,
                            struct task *ret)
{
	const struct tasks *tasks = &ticker->tasks;
	uint64_t tid, address;

	return thread->task_runner != 0 &&
	       tasks->ops->runner(tasks->runtime, live_tid(ticker), thread->task_runner, &tid,
	                          &address) &&
	       tid == own_number(tasks, thread) && address != 0 &&
	       read_task(ticker, address, ret) && ret->runner == thread->task_runner &&
	       ret->state == TASK_RUN && !sleeper_has_moved(ticker->target, thread);
}

static bool find_of_stopped(struct ticker *ticker, const struct snapshot *snapshot,
                            struct task *ret)
{
	const struct tasks *tasks = &ticker->tasks;

	return tasks->ops->of_snapshot(tasks->runtime, live_tid(ticker), snapshot, ret) &&
	       ret->state != TASK_OUTSIDE;
}

// Returns the entry of the task that a thread runs; NULL: it is not shown.
static struct task_entry *running_entry(struct ticker *ticker, const struct account *account,
                                        const struct task *task, uint64_t tick)
{
	struct tasks *tasks = &ticker->tasks;
	struct task_entry *entry = get_entry(tasks, task->address);

	if (entry->is_alive && is_another(tasks, entry, task))
		end_task(ticker, entry);
	if (!entry->is_alive)
		begin_task(ticker, entry, task, tick, account->until_ns);
	entry->seen = *task;
	entry->look = tasks->look.number;
	return entry->thread == TASK_NONE ? NULL : entry;
}

// Has each tick look at it, until it is seen parked or gone.
static void follow(struct tasks *tasks, struct task_entry *entry)
{
	if (!entry->is_active)
		*array_push(tasks->active, tasks->n_active, tasks->active_capacity) =
		    (uint32_t)(entry - tasks->entries);
	entry->is_active = true;
}

// Does the same with one of which no stack is known yet: it may be gone by the next look, and what
// it did until then would not be known.
static void follow_unknown(struct tasks *tasks, struct task_entry *entry)
{
	if (!entry->is_sampled && !entry->has_stack)
		follow(tasks, entry);
}

static void release(struct ticker *ticker, const struct target_thread *thread)
{
	struct task_entry *entry = entry_of(&ticker->tasks, &thread->account);

	if (entry && entry->bound_tid == thread->tid)
		entry->bound_tid = 0;
}

void tasks_unbind(struct ticker *ticker, struct target_thread *thread)
{
	struct account *account = &thread->account;

	if (account->task)
		profile_pass(ticker->profile, account->own, account->until_ns);
	release(ticker, thread);
	account->thread = account->own;
	account->task = 0;
}

// Returns the first of the ticks for which the thread's sample stands...
static uint64_t first_tick(const struct ticker *ticker, const struct target_thread *thread,
                           const struct snapshot *snapshot)
{
	return snapshot ? thread->account.asked_tick : ticker->tasks.tick;
}

// ...and how many follow it.
static uint64_t pending_ticks(const struct account *account)
{
	uint64_t n = 0;

	for (size_t i = 0; i < account->n_pending_ticks; i++)
		n += account->pending_ticks[i].count;
	return n;
}

// Counts the ticks before the one in which the thread was seen to run the task: until then it
// was as it was last seen parked. If it was last seen running, or never, all that is known is that
// it ran somewhere between two looks: what it is seen at next, which is now, stands for those
// ticks, too. But the samples of a thread of which no task was known until now, as it slept
// (in C, say), may be those of this one already.
static void count_until_taken(struct ticker *ticker, const struct account *account,
                              struct task_entry *entry, uint64_t tick)
{
	if (was_parked(ticker, entry)) {
		if (account->until_ns > ticker->profile->threads[entry->thread].last_ns)
			count_as_before(ticker, entry, tick - 1, account->until_ns);
	} else if (tick > entry->tick && (entry->is_sampled || account->task)) {
		const uint64_t n = tick - 1 - entry->tick;
		ticker->tasks.n_owed = n;
		// One that is new stands for those before it.
		ticker->stats->tasks.moved += n > 0 && !entry->is_sampled ? 1 : n;
	}
}

void tasks_bind(struct ticker *ticker, struct target_thread *thread,
                const struct snapshot *snapshot)
{
	struct tasks *tasks = &ticker->tasks;
	struct account *account = &thread->account;
	const uint64_t tick = first_tick(ticker, thread, snapshot);
	struct task_entry *entry = NULL, *before = entry_of(tasks, account);
	struct task task = {0};

	tasks->n_owed = 0;
	if (!tasks->found)
		return;
	if (snapshot ? find_of_stopped(ticker, snapshot, &task)
	             : find_of_sleeper(ticker, thread, &task))
		entry = running_entry(ticker, account, &task, tick);
	else if (before && before->seen.id == task.id && task.state == TASK_OUTSIDE)
		before->seen = task; // the time of this sample is the thread's alone
	tasks->shown = entry ? (uint32_t)(entry - tasks->entries) + 1 : 0;
	// Another thread may have run it already in the same tick.
	if (!entry || (!ticker->accounting.priming && entry->tick >= tick)) {
		tasks_unbind(ticker, thread);
		return;
	}
	if (account->task != tasks->shown) {
		if (!ticker->accounting.priming)
			count_until_taken(ticker, account, entry, tick);
		release(ticker, thread);
	}
	name_after(ticker, entry, thread);
	label_running(ticker, entry);
	account->thread = entry->thread;
	account->task = tasks->shown;
	entry->bound_tid = thread->tid;
	if (!ticker->accounting.priming)
		entry->tick = tick + pending_ticks(account);
	entry->is_kept = false;
	follow(tasks, entry);
}

void tasks_label(struct ticker *ticker, const struct target_thread *thread, uint32_t labels)
{
	if (!thread->account.task)
		profile_label_thread(ticker->profile, thread->account.thread, labels);
}

uint32_t tasks_stack(struct ticker *ticker, const struct unwound *unwound)
{
	struct tasks *tasks = &ticker->tasks;

	return tasks->shown ? intern_stack(ticker, &tasks->entries[tasks->shown - 1], unwound)
	                    : profile_intern_stack(ticker->profile, unwound->locations, unwound->n,
	                                           unwound->end, unwound->guessed);
}

void tasks_pay(struct ticker *ticker, const struct account *account)
{
	struct tasks *tasks = &ticker->tasks;

	if (tasks->n_owed == 0 || !account->task || !account->sampled)
		return;
	// Its time up to now is that sample's already.
	profile_count_again(ticker->profile, account->sample, tasks->n_owed,
	                    ticker->profile->threads[account->thread].last_ns);
	ticker->stats->samples += tasks->n_owed;
	tasks->n_owed = 0;
}

// --- Those that are parked

// Returns why it waits, and for what (wait_reasons.h).
static uint32_t wait_of(struct ticker *ticker, const struct task_entry *entry,
                        const struct task_copy *copy)
{
	struct task_wait wait;

	ticker->tasks.ops->wait(ticker->tasks.runtime, &entry->seen, copy, &wait);
	return wait.descriptor >= 0
	           ? wait_reasons_of_reason(&ticker->waits, ticker->target, wait.reason,
	                                    wait.descriptor)
	           : profile_intern_reason(ticker->profile, wait.reason, wait.object);
}

// One that another language has called keeps its thread, which waits for it: that language's
// runtime may have frames of it below.
static void merge_runtimes(struct ticker *ticker, const struct task_entry *entry,
                           const struct target_thread *thread, struct snapshot *snapshot,
                           struct unwound *unwound)
{
	const struct snapshot_mark mark = snapshot_buffer_mark(ticker->buffer);
	struct task now;

	tick_read_runtimes(ticker, thread->tid, snapshot);
	if (read_task(ticker, entry->seen.address, &now) &&
	    ticker->tasks.ops->is_same(&now, &entry->seen))
		tick_merge(ticker, thread->tid, snapshot, unwound);
	snapshot_buffer_take_back(ticker->buffer, &mark);
}

// Interns its stack, or why there is none.
static uint32_t stack_of(struct ticker *ticker, struct task_entry *entry, struct task_copy *copied)
{
	struct snapshot *snapshot = &copied->snapshot;
	struct unwound unwound;

	if (copied->result == TASK_UNREADABLE) {
		ticker->stats->tasks.unreadable++;
		return profile_intern_stack(ticker->profile, NULL, 0, STACK_NOT_SAMPLED, 0);
	}
	tick_walk(ticker, snapshot, &unwound);
	if (unwound.end == STACK_SWITCHED && ticker->tasks.ops->pass_own_stack(copied))
		tick_walk(ticker, snapshot, &unwound);
	const struct target_thread *thread =
	    entry->seen.only_runner ? find_thread(ticker, entry->seen.only_runner) : NULL;
	if (thread)
		name_after(ticker, entry, thread);
	if (thread && snapshot->n_regions > 1)
		merge_runtimes(ticker, entry, thread, snapshot, &unwound);
	return intern_stack(ticker, entry, &unwound);
}

static void count_copy(struct ticker *ticker, struct task_entry *entry, struct task_copy *copied)
{
	struct tasks *tasks = &ticker->tasks;
	// A page may be on the move just when it is to be read: try once more, at the next look.
	const bool tries_again = copied->labels_lack && !entry->lacks_labels;

	entry->lacks_labels = copied->labels_lack;
	if (tries_again && entry->is_sampled)
		return;
	const uint32_t stack = stack_of(ticker, entry, copied);
	ticker->stats->tasks.copied++;
	label_task(ticker, entry, copied->labels, copied->labels_lack ? LABELS_UNREADABLE : NULL);
	entry->is_kept = tasks->ops->may_be_kept(tasks->runtime, &entry->seen) && !tries_again;
	entry->state = entry->seen.state == TASK_WAITING ? THREAD_SLEEPING : THREAD_RUNNABLE;
	ticker->profile->threads[entry->thread].waits_since_ns = entry->seen.since_ns;
	entry->wait = entry->state == THREAD_SLEEPING ? wait_of(ticker, entry, copied) : WAIT_NONE;
	if (ticker->accounting.priming) {
		entry->stack = stack;
		entry->has_stack = true;
		entry->is_active = false;
	} else if (count_task(ticker, entry, stack, tasks->tick, ticker->accounting.now_ns)) {
		entry->is_active = false;
	} else {
		entry->is_kept = false; // it ran in this tick: read it again in the next one
	}
}

static void count_result(struct ticker *ticker, struct task_entry *entry, struct task_copy *copied)
{
	if (copied->result == TASK_COPIED || copied->result == TASK_UNREADABLE) {
		count_copy(ticker, entry, copied);
		return;
	}
	if (copied->result == TASK_ENDED) {
		ticker->stats->tasks.ended += !entry->is_sampled;
		end_task(ticker, entry);
	} else { // its structure is another one's, perhaps, but not filled in yet
		ticker->stats->tasks.moved++;
		follow_unknown(&ticker->tasks, entry);
	}
}

// Copies one by itself, which takes so little time that it seldom moves meanwhile.
static void count_alone(struct ticker *ticker, struct task_entry *entry)
{
	struct tasks *tasks = &ticker->tasks;

	for (int i = 0; i < MAX_COPIES; i++) {
		if (!is_parked(&entry->seen)) {
			follow_unknown(tasks, entry);
			return; // counted when it is seen next
		}
		struct task_copy *copied =
		    tasks->ops->copy_alone(tasks->runtime, live_tid(ticker), &entry->seen);
		if (copied->result != TASK_MOVED) {
			count_result(ticker, entry, copied);
			return;
		}
		entry->seen = copied->now;
	}
	follow_unknown(tasks, entry);
	ticker->stats->tasks.moved++;
}

static void count_copied_ones(struct ticker *ticker)
{
	struct tasks *tasks = &ticker->tasks;
	const size_t n = tasks->ops->copy(tasks->runtime, live_tid(ticker));

	for (size_t i = 0; i < n; i++) {
		struct task_copy *copied = tasks->ops->copied(tasks->runtime, i);
		// A thread that has stopped meanwhile may be seen to run it.
		target_attend(ticker->target, i);
		struct task_entry *entry = &tasks->entries[copied->id];
		if (!entry->is_alive || entry->thread == TASK_NONE ||
		    !tasks->ops->is_same(&entry->seen, &copied->task))
			continue;
		if (copied->result == TASK_MOVED) {
			entry->seen = copied->now;
			count_alone(ticker, entry);
		} else {
			count_result(ticker, entry, copied);
		}
	}
	tasks->ops->drop(tasks->runtime);
}

static void count_parked(struct ticker *ticker, struct task_entry *entry, const struct task *task)
{
	struct tasks *tasks = &ticker->tasks;
	const uint32_t id = (uint32_t)(entry - tasks->entries);

	if (entry->is_kept && tasks->ops->is_same(task, &entry->seen)) {
		ticker->stats->tasks.kept++;
		if (!ticker->accounting.priming)
			count_as_before(ticker, entry, tasks->tick, ticker->accounting.now_ns);
		return;
	}
	entry->seen = *task;
	entry->is_kept = false;
	// Copying many together takes longer: it has to be sure that none comes back to the place.
	if (!tasks->ops->may_be_kept(tasks->runtime, task)) {
		count_alone(ticker, entry);
	} else if (!tasks->ops->add(tasks->runtime, task, id)) {
		count_copied_ones(ticker);
		tasks->ops->add(tasks->runtime, task, id);
	}
}

// --- Looks at all of them

// Returns since when and in which tick one is counted that is new to the table. It stands for those
// that were at its place since the last look.
static void begin_new(struct ticker *ticker, struct task_entry *entry, const struct task *task)
{
	const struct tasks *tasks = &ticker->tasks;
	const bool was_looked_at = tasks->looked_ns != 0;

	begin_task(ticker, entry, task, was_looked_at ? tasks->tick : tasks->look.first_tick,
	           was_looked_at ? tasks->looked_ns : tasks->look.from_ns);
}

static void look_at(struct ticker *ticker, const struct task *task)
{
	struct tasks *tasks = &ticker->tasks;
	struct task_entry *entry = get_entry(tasks, task->address);

	if (entry->is_alive && is_another(tasks, entry, task))
		end_task(ticker, entry);
	if (!entry->is_alive)
		begin_new(ticker, entry, task);
	entry->look = tasks->look.number;
	if (task->runner)
		note_thread(ticker, task->runner);
	tasks->look.system += entry->thread == TASK_NONE;
	if (entry->thread == TASK_NONE)
		return;
	if (task->runner && task->state != TASK_OUTSIDE)
		follow_unknown(tasks, entry);
	if (task->state == TASK_OUTSIDE && !entry->bound_tid) {
		entry->seen = *task;
		count_as_before(ticker, entry, tasks->tick, ticker->accounting.now_ns);
	}
	if (is_parked(task) &&
	    (ticker->accounting.priming || !is_counted(ticker, entry, ticker->accounting.now_ns)))
		count_parked(ticker, entry, task);
}

// Looks at tasks that were run and are not any more: they need not wait for the next look.
static void look_at_active(struct ticker *ticker)
{
	struct tasks *tasks = &ticker->tasks;
	size_t kept = 0;

	for (size_t i = 0; i < tasks->n_active; i++) {
		const uint32_t id = tasks->active[i];
		struct task_entry *entry = &tasks->entries[id];
		struct task task;
		if (!entry->is_active || !entry->is_alive || entry->thread == TASK_NONE) {
			entry->is_active = false;
			continue;
		}
		if (!is_counted(ticker, entry, ticker->accounting.now_ns) &&
		    read_task(ticker, entry->seen.address, &task)) {
			if (is_another(tasks, entry, &task) || task.state == TASK_DEAD)
				end_task(ticker, entry);
			else if (is_parked(&task))
				count_parked(ticker, entry, &task);
		}
		tasks->active[kept++] = id;
		target_attend(ticker->target, i);
	}
	tasks->n_active = kept;
	count_copied_ones(ticker);
}

// False if the list cannot be read.
static bool begin(struct ticker *ticker)
{
	struct tasks *tasks = &ticker->tasks;

	if (!tasks->ops->list(tasks->runtime, live_tid(ticker)))
		return false;
	ticker->stats->tasks.looks++;
	tasks->look = (struct task_look){
	    .number = tasks->look.number + 1,
	    .is_begun = true,
	    .first_tick = tasks->tick,
	    .from_ns = ticker->accounting.from_ns,
	    .began_ns = ticker->accounting.now_ns,
	};
	return true;
}

// Looks at some hundred; false if there are no more.
static bool look_at_next(struct ticker *ticker)
{
	struct tasks *tasks = &ticker->tasks;
	const struct task *items;
	size_t n;

	if (!tasks->ops->list_next(tasks->runtime, live_tid(ticker), &items, &n))
		return false;
	tasks->look.alive += n;
	for (size_t i = 0; i < n; i++) {
		look_at(ticker, &items[i]);
		target_attend(ticker->target, i);
	}
	return true;
}

// Ends some of those that were not listed; false if there are no more.
static bool end_some(struct ticker *ticker)
{
	struct tasks *tasks = &ticker->tasks;
	struct task_look *look = &tasks->look;

	for (size_t i = 0; i < CHECK_ONCE && look->n_checked < tasks->n_entries; i++) {
		struct task_entry *entry = &tasks->entries[look->n_checked++];
		if (entry->is_alive && entry->look != look->number)
			end_task(ticker, entry);
		target_attend(ticker->target, i);
	}
	return look->n_checked < tasks->n_entries;
}

static void end(struct ticker *ticker)
{
	struct tasks *tasks = &ticker->tasks;

	ticker->stats->tasks.alive = tasks->look.alive;
	ticker->stats->tasks.system = tasks->look.system;
	tasks->look.is_begun = false;
	tasks->looked_ns = tasks->look.began_ns;
	if (ticker->accounting.priming)
		return;
	tasks->is_read = true;
	tasks->next_look_ns = clock_now_ns() + tasks->look.cost_ns * LOOK_SHARE;
}

// Goes on until that time, or the look's end.
static void go_on(struct ticker *ticker, int64_t until_ns)
{
	struct task_look *look = &ticker->tasks.look;
	struct run_tasks *figures = &ticker->stats->tasks;
	const int64_t cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	bool is_over = false;

	do {
		if (!look->is_listed)
			look->is_listed = !look_at_next(ticker);
		else
			is_over = !end_some(ticker);
	} while (!is_over && clock_now_ns() < until_ns);
	count_copied_ones(ticker);
	const int64_t cost_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	look->cost_ns += cost_ns;
	figures->look_ns += cost_ns;
	figures->first_looks_ns += ticker->tasks.is_read ? 0 : cost_ns;
	if (is_over)
		end(ticker);
	else if (ticker->accounting.priming)
		look->is_begun = false; // those that were read are counted by the next one
}

static int64_t end_of_share(const struct ticker *ticker, int64_t now_ns)
{
	if (ticker->setup->counts_at_once)
		return NO_LIMIT;
	return now_ns + (ticker->accounting.priming ? FIRST_LOOK_NS
	                                            : ticker->profile->period_ns / TICK_SHARE);
}

static bool look_at_some(struct ticker *ticker)
{
	struct tasks *tasks = &ticker->tasks;
	const int64_t now_ns = clock_now_ns();

	look_at_active(ticker);
	if (!tasks->look.is_begun && (now_ns < tasks->next_look_ns || !begin(ticker)))
		return false;
	go_on(ticker, end_of_share(ticker, now_ns));
	return true;
}

static void look_at_last(struct ticker *ticker)
{
	const struct tasks *tasks = &ticker->tasks;

	if (!tasks->is_read && (tasks->look.is_begun || begin(ticker)))
		go_on(ticker, NO_LIMIT);
	for (int i = 0; i < MAX_LAST_LOOKS && tasks->n_active > 0; i++)
		look_at_active(ticker);
}

// --- Ticks

// Forgets all of them: the program that had them is gone.
static void end_all(struct ticker *ticker)
{
	struct tasks *tasks = &ticker->tasks;
	const struct tasks before = *tasks;

	for (size_t i = 0; i < tasks->n_entries; i++)
		end_task(ticker, &tasks->entries[i]);
	for (size_t i = 0; i < ticker->target->n_threads; i++) {
		tasks_unbind(ticker, ticker->target->threads[i]);
		ticker->target->threads[i]->task_runner = 0;
	}
	forget(tasks);
	*tasks = (struct tasks){
	    .ops = before.ops,
	    .runtime = before.runtime,
	    .shows_system = before.shows_system,
	    .no_creators = before.no_creators,
	    .tick = before.tick,
	};
}

static void find(struct ticker *ticker)
{
	struct tasks *tasks = &ticker->tasks;
	struct held_time *hold = ticker->setup->hold;
	const bool begun = held_time_begin_work(hold);
	struct proc_status status;
	bool is_other;

	const bool found = tasks->ops->find(tasks->runtime, live_tid(ticker), tasks->tick,
	                                    ticker->unwinder.rules->n_made, &is_other);
	held_time_end_work(hold, begun);
	if (is_other)
		end_all(ticker);
	if (found && !tasks->found)
		tasks->numbers_differ =
		    proc_read_status(ticker->target->pid, &status) && status.has_own_pids;
	tasks->found = found;
}

// Takes over what the threads' samples have counted for tasks until now.
static void take_over(struct ticker *ticker)
{
	struct tasks *tasks = &ticker->tasks;

	for (size_t i = 0; i < ticker->target->n_threads; i++) {
		const struct account *account = &ticker->target->threads[i]->account;
		struct task_entry *entry = entry_of(tasks, account);
		if (!entry || !account->sampled || entry->thread != account->thread ||
		    account->until_ns < ticker->accounting.now_ns)
			continue;
		entry->tick = tasks->tick;
		entry->sample = account->sample;
		entry->is_sampled = true;
	}
}

void tasks_begin(struct ticker *ticker, bool is_idle)
{
	struct tasks *tasks = &ticker->tasks;

	if (tasks->found && !is_idle)
		take_over(ticker);
	tasks->tick++;
}

void tasks_look(struct ticker *ticker)
{
	struct tasks *tasks = &ticker->tasks;

	if (!tasks->ops || ticker->space.is_foreign || live_tid(ticker) == 0)
		return;
	find(ticker);
	if (!tasks->found)
		return;
	take_over(ticker);
	if (!look_at_some(ticker) && ticker->setup->counts_at_once)
		tasks_settle(ticker, false);
}

void tasks_look_again(struct ticker *ticker)
{
	const struct tasks *tasks = &ticker->tasks;

	if (tasks->ops && tasks->ops->has_new_code(tasks->runtime, ticker->unwinder.rules->n_made))
		tasks_look(ticker);
}

bool tasks_is_looking(const struct ticker *ticker)
{
	return ticker->tasks.found && ticker->tasks.look.is_begun;
}

void tasks_settle(struct ticker *ticker, bool is_end)
{
	struct tasks *tasks = &ticker->tasks;
	const int64_t now_ns = ticker->accounting.now_ns;

	if (!tasks->found)
		return;
	take_over(ticker);
	if (is_end && tasks->look.number > 0 && live_tid(ticker) != 0)
		look_at_last(ticker);
	for (size_t i = 0; i < tasks->n_entries; i++) {
		struct task_entry *entry = &tasks->entries[i];
		// One that ran somewhere is counted with what it is seen at next, unless it is
		// never seen again.
		const bool may_count =
		    is_end || (!entry->bound_tid &&
		               (was_parked(ticker, entry) || entry->seen.state == TASK_OUTSIDE));
		if (entry->is_alive && entry->thread != TASK_NONE && may_count &&
		    !is_counted(ticker, entry, now_ns))
			count_as_before(ticker, entry, tasks->tick, now_ns);
		target_attend(ticker->target, i);
	}
}

void tasks_note_walk(const struct ticker *ticker)
{
	const struct tasks *tasks = &ticker->tasks;

	if (tasks->ops)
		tasks->ops->note_walk(tasks->runtime);
}

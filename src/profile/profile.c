// SPDX-License-Identifier: MIT
#include "profile.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "labels.h"
#include "language_text.h"
#include "memory.h"
#include "text.h"
#include "waits.h"

const char *thread_state_name(enum thread_state state)
{
	static const char *const names[N_THREAD_STATES] = {
	    [THREAD_RUNNING] = "running", [THREAD_SLEEPING] = "sleeping", [THREAD_DISK] = "disk",
	    [THREAD_STOPPED] = "stopped", [THREAD_RUNNABLE] = "runnable",
	};
	return names[state];
}

bool thread_state_is_blocked(enum thread_state state)
{
	return state != THREAD_RUNNING && state != THREAD_RUNNABLE;
}

enum thread_state thread_state_named(const char *name, size_t length)
{
	enum thread_state state = 0;

	while (state < N_THREAD_STATES && (strlen(thread_state_name(state)) != length ||
	                                   strncmp(thread_state_name(state), name, length) != 0))
		state++;
	return state;
}

// Above PID_MAX_LIMIT (include/linux/threads.h), so that no thread has it, and round, so that the
// id can be read off.
enum { FIRST_TASK = 1000000000 };

enum { DEFAULT_MAX_LOCATION_IDS = 1 << 28, TELL_FIGURES_NS = 250000000, MAX_LATE_NS = 1000000000 };

const char *stack_end_name(enum stack_end end)
{
	static const char *const names[N_STACK_ENDS] = {
	    [STACK_COMPLETE] = "complete",
	    [STACK_NO_RULE] = "no unwinding rule",
	    [STACK_UNREADABLE] = "unreadable memory",
	    [STACK_NOT_COPIED] = "stack larger than the copy",
	    [STACK_NO_PROGRESS] = "no progress",
	    [STACK_TOO_DEEP] = "deeper than --max-depth",
	    [STACK_NEEDS_REGISTER] = "unknown register",
	    [STACK_SWITCHED] = "continues on another stack",
	    [STACK_NOT_SAMPLED] = "stack not available",
	    [STACK_NO_ROOM] = "too many different stacks",
	    [STACK_NOT_RESIDENT] = "page not in memory",
	    [STACK_FOREIGN] = "32-bit program",
	    [STACK_NO_RETURN] = "no return address",
	    [STACK_UNSEEN] = "seen at no tick",
	};
	return names[end];
}

void profile_deinit(struct profile *profile)
{
	for (size_t i = 0; i < profile->n_threads; i++)
		free(profile->threads[i].name);
	for (size_t i = 0; i < profile->n_processes; i++)
		free(profile->processes[i].name);
	for (size_t i = 0; i < profile->n_waits; i++) {
		free(profile->waits[i].descriptor);
		free(profile->waits[i].meaning);
		free(profile->waits[i].frames);
		free(profile->waits[i].reason);
	}
	for (size_t i = 0; i < profile->n_labels; i++)
		free(profile->labels[i]);
	free(profile->labels);
	free(profile->waits);
	free(profile->processes);
	free(profile->locations);
	free(profile->location_ids);
	free(profile->stacks);
	free(profile->threads);
	free(profile->samples);
	free(profile->free_samples);
	free(profile->free_threads);
	hash_index_deinit(&profile->location_index);
	hash_index_deinit(&profile->stack_index);
	hash_index_deinit(&profile->sample_index);
	hash_index_deinit(&profile->wait_index);
	hash_index_deinit(&profile->labels_index);
	*profile = (struct profile){0};
}

uint32_t profile_intern_location(struct profile *profile, uint32_t module, uint64_t address)
{
	return profile_intern_code(profile, module, address, 0);
}

uint32_t profile_intern_code(struct profile *profile, uint32_t module, uint64_t address,
                             uint32_t code)
{
	const struct location key = {.module = module, .code = code, .address = address};

	return hash_intern(&profile->location_index, profile->locations, profile->n_locations,
	                   profile->locations_capacity, key, sizeof(key));
}

struct stack_key {
	const uint32_t *location_ids;
	size_t n;
	enum stack_end end;
	uint8_t guessed;
};

static bool stack_equal(const void *context, uint32_t id, const void *key)
{
	const struct profile *profile = context;
	const struct stack *a = &profile->stacks[id];
	const struct stack_key *b = key;

	return a->n_frames == b->n && a->end == b->end && a->guessed == b->guessed &&
	       (b->n == 0 || memcmp(profile->location_ids + a->first, b->location_ids,
	                            b->n * sizeof(*b->location_ids)) == 0);
}

// Bounds the stacks: a target could make up new ones without end.
static bool has_room(const struct profile *profile, size_t n)
{
	const size_t max =
	    profile->max_location_ids ? profile->max_location_ids : DEFAULT_MAX_LOCATION_IDS;

	return profile->n_location_ids + n <= max;
}

static uint64_t hash_stack(const uint32_t *location_ids, size_t n, enum stack_end end,
                           uint8_t guessed)
{
	return hash_mix(hash_bytes(location_ids, n * sizeof(*location_ids)), end * 4u + guessed);
}

uint32_t profile_intern_stack(struct profile *profile, const uint32_t *location_ids, size_t n,
                              enum stack_end end, uint8_t guessed)
{
	const struct stack_key key = {
	    .location_ids = location_ids, .n = n, .end = end, .guessed = guessed};
	const uint64_t hash = hash_stack(location_ids, n, end, guessed);
	uint32_t id = hash_index_find(&profile->stack_index, hash, stack_equal, profile, &key);

	if (id != HASH_NONE)
		return id;
	if (n > 1 && !has_room(profile, n))
		return profile_intern_stack(profile, location_ids, 1, STACK_NO_ROOM, false);
	id = profile->n_stacks;
	*array_push(profile->stacks, profile->n_stacks, profile->stacks_capacity) = (struct stack){
	    .first = profile->n_location_ids,
	    .n_frames = n,
	    .end = end,
	    .guessed = guessed,
	};
	profile->location_ids =
	    memory_grow(profile->location_ids, &profile->location_ids_capacity,
	                profile->n_location_ids + n, sizeof(*profile->location_ids));
	if (n)
		memcpy(profile->location_ids + profile->n_location_ids, location_ids,
		       n * sizeof(*location_ids));
	profile->n_location_ids += n;
	hash_index_insert(&profile->stack_index, hash, id);
	return id;
}

static struct process_name *find_process(const struct profile *profile, int pid)
{
	// Search from the end: if a pid was used again, the later process is meant.
	for (size_t i = profile->n_processes; i-- > 0;)
		if (profile->processes[i].pid == pid)
			return &profile->processes[i];
	return NULL;
}

static void tell_process(struct profile *profile, const struct process_name *process)
{
	for (struct span_follower *f = profile->followers; f; f = f->next)
		if (f->process_named)
			f->process_named(f, profile, process);
}

void profile_begin_process(struct profile *profile, int pid, const char *name, int64_t now_ns)
{
	const int64_t from_ns = find_process(profile, pid) ? now_ns : 0;
	struct process_name *process =
	    array_push(profile->processes, profile->n_processes, profile->processes_capacity);

	*process = (struct process_name){pid, from_ns, memory_strdup(name)};
	tell_process(profile, process);
}

void profile_name_process(struct profile *profile, int pid, const char *name)
{
	struct process_name *process = find_process(profile, pid);

	if (!process) {
		profile_begin_process(profile, pid, name, 0);
	} else if (strcmp(process->name, name) != 0) {
		free(process->name);
		process->name = memory_strdup(name);
		tell_process(profile, process);
	}
}

const char *profile_process_of(const struct profile *profile, const struct thread *thread)
{
	for (size_t i = profile->n_processes; i-- > 0;)
		if (profile->processes[i].pid == thread->pid &&
		    profile->processes[i].from_ns <= thread->first_ns)
			return profile->processes[i].name;
	return profile_process_name(profile, thread->pid);
}

const char *profile_process_name(const struct profile *profile, int pid)
{
	const struct process_name *process = find_process(profile, pid);

	return process ? process->name : "";
}

char *profile_threads_text(const struct profile *profile)
{
	const size_t n =
	    profile->n_threads - profile->n_free_threads + (size_t)profile->forgotten.threads;
	size_t n_alive = 0;
	bool has_tasks = false;

	for (size_t i = 0; i < profile->n_threads; i++) {
		n_alive += !profile->threads[i].ended && !profile->threads[i].forgotten;
		has_tasks |= profile->threads[i].is_task;
	}
	_cleanup_free_ char *end = n_alive == 0 || n_alive == n
	                               ? memory_strdup("")
	                               : memory_printf(" (%zu at the end)", n_alive);
	if (has_tasks)
		return memory_printf("%zu threads and %s%s", n, language_tasks(2), end);
	return memory_printf("%zu thread%s%s", n, text_plural(n), end);
}

uint32_t profile_add_thread(struct profile *profile, int pid, int tid, const char *name,
                            int64_t now_ns)
{
	const uint32_t id = profile->n_free_threads
	                        ? profile->free_threads[--profile->n_free_threads]
	                        : profile->n_threads;

	if (id == profile->n_threads)
		*array_push(profile->threads, profile->n_threads, profile->threads_capacity) =
		    (struct thread){0};
	free(profile->threads[id].name);
	profile->threads[id] = (struct thread){
	    .pid = pid,
	    .tid = tid,
	    .name = memory_strdup(name),
	    .first_ns = now_ns,
	    .last_ns = now_ns,
	    .kernel_cpu_ns = -1,
	    .kernel_delay_ns = -1,
	};
	return id;
}

uint32_t profile_add_task(struct profile *profile, int pid, uint64_t task_id, const char *name,
                          int64_t now_ns)
{
	const int tid = FIRST_TASK + (int)(task_id % (uint64_t)(INT_MAX - FIRST_TASK));
	const uint32_t id = profile_add_thread(profile, pid, tid, name, now_ns);

	profile->threads[id].is_task = true;
	profile->threads[id].task_id = task_id;
	return id;
}

void profile_begin(struct profile *profile, int64_t now_ns)
{
	profile->start_ns = now_ns;
	for (size_t i = 0; i < profile->n_threads; i++) {
		profile->threads[i].first_ns = now_ns;
		profile->threads[i].last_ns = now_ns;
	}
}

void profile_follow_clock(struct profile *profile)
{
	profile->start_time_ns += clock_step_ns(profile->start_time_ns - profile->start_ns);
}

static void tell_name(const struct profile *profile, uint32_t thread)
{
	for (struct span_follower *f = profile->followers; f; f = f->next)
		if (f->thread_named)
			f->thread_named(f, profile, thread);
}

void profile_rename_thread(struct profile *profile, uint32_t thread, const char *name)
{
	char **old = &profile->threads[thread].name;

	if (strcmp(*old, name) == 0)
		return;
	free(*old);
	*old = memory_strdup(name);
	tell_name(profile, thread);
}

static bool sample_equal(const void *context, uint32_t id, const void *key)
{
	const struct profile *profile = context;
	const struct sample *a = &profile->samples[id], *b = key;

	return a->stack == b->stack && a->thread == b->thread && a->state == b->state &&
	       a->wait == b->wait && a->labels == b->labels;
}

static uint64_t hash_sample(const struct sample *sample)
{
	const uint64_t what = (uint64_t)sample->wait << 8 | sample->state;

	return hash_mix((uint64_t)sample->stack << 32 | sample->thread,
	                sample->labels ? hash_mix(what, sample->labels) : what);
}

uint32_t profile_count(struct profile *profile, uint32_t thread, uint32_t stack,
                       enum thread_state state, uint32_t wait, uint64_t ticks, int64_t now_ns)
{
	const struct sample key = {
	    .stack = stack,
	    .thread = thread,
	    .wait = wait,
	    .labels = profile->threads[thread].labels,
	    .state = state,
	};
	const uint64_t hash = hash_sample(&key);
	uint32_t id = hash_index_find(&profile->sample_index, hash, sample_equal, profile, &key);

	if (id == HASH_NONE) {
		waits_add_none(profile);
		id = profile->n_free_samples ? profile->free_samples[--profile->n_free_samples]
		                             : profile->n_samples;
		if (id == profile->n_samples)
			*array_push(profile->samples, profile->n_samples,
			            profile->samples_capacity) = key;
		profile->samples[id] = key;
		hash_index_insert(&profile->sample_index, hash, id);
	}
	// A sleeper that had to be looked at again has run in between, so this is a new sleep.
	if (state != THREAD_RUNNING)
		profile->threads[thread].interrupted = true;
	profile_count_again(profile, id, ticks, now_ns);
	return id;
}

static void index_stack(struct profile *profile, uint32_t id)
{
	const struct stack *stack = &profile->stacks[id];
	const uint32_t *ids = profile->location_ids + stack->first;

	hash_index_insert(&profile->stack_index,
	                  hash_stack(ids, stack->n_frames, stack->end, stack->guessed), id);
}

void profile_reindex(struct profile *profile)
{
	hash_index_clear(&profile->stack_index);
	for (size_t i = 0; i < profile->n_stacks; i++)
		index_stack(profile, i);
	hash_index_clear(&profile->sample_index);
	for (size_t i = 0; i < profile->n_samples; i++)
		if (profile->samples[i].count > 0)
			hash_index_insert(&profile->sample_index, hash_sample(&profile->samples[i]),
			                  i);
}

static void tell_change(struct profile *profile, uint32_t id, const struct span *ended)
{
	for (struct span_follower *f = profile->followers; f; f = f->next)
		if (f->changed)
			f->changed(f, profile, id, ended);
}

static struct span span_so_far(const struct thread *thread)
{
	struct span span = thread->span;

	span.end_ns = thread->last_ns;
	return span;
}

struct span profile_open_span(const struct profile *profile, uint32_t thread)
{
	return span_so_far(&profile->threads[thread]);
}

// Returns the span that the thread is in, and ends it.
static struct span end_span(struct thread *thread)
{
	const struct span ended = span_so_far(thread);

	thread->span.count = 0;
	return ended;
}

void profile_count_again(struct profile *profile, uint32_t id, uint64_t ticks, int64_t now_ns)
{
	struct sample *sample = &profile->samples[id];
	struct thread *thread = &profile->threads[sample->thread];
	const int64_t wall_ns = now_ns - thread->last_ns;
	const bool goes_on =
	    thread->span.sample == id && thread->span.count > 0 && !thread->interrupted;

	sample->count += ticks;
	sample->wall_ns += wall_ns;
	if (sample->state == THREAD_RUNNING)
		sample->cpu_ns += wall_ns;
	if (goes_on) { // most often by far
		thread->span.count += ticks;
		thread->last_ns = now_ns;
		return;
	}
	const struct span ended = end_span(thread);
	thread->span = (struct span){
	    .thread = sample->thread,
	    .sample = id,
	    .count = ticks,
	    .start_ns = thread->last_ns,
	};
	thread->interrupted = false;
	thread->last_ns = now_ns;
	tell_change(profile, sample->thread, &ended);
}

void profile_end_span(struct profile *profile, uint32_t id)
{
	struct thread *thread = &profile->threads[id];

	if (thread->span.count == 0)
		return;
	const struct span ended = end_span(thread);
	tell_change(profile, id, &ended);
}

void profile_pass(struct profile *profile, uint32_t id, int64_t now_ns)
{
	struct thread *thread = &profile->threads[id];

	profile_end_span(profile, id);
	if (now_ns <= thread->last_ns)
		return;
	thread->away_ns += now_ns - thread->last_ns;
	thread->last_ns = now_ns;
}

void profile_reuse_task(struct profile *profile, uint32_t id, int64_t now_ns)
{
	profile_pass(profile, id, now_ns);
	profile->threads[id].labels = LABELS_NONE;
	profile->threads[id].waits_since_ns = 0;
	if (profile->threads[id].task_id == 0)
		return;
	profile->threads[id].task_id = 0;
	tell_name(profile, id);
}

// Tells the last figures, unless followers know them.
static void tell_figures(const struct profile *profile, uint32_t id)
{
	struct thread *thread = &profile->threads[id];
	const struct thread_figures *last = &thread->last_figures;

	if (last->at_ns == thread->told_figures.at_ns)
		return;
	thread->told_figures = *last;
	for (struct span_follower *f = profile->followers; f; f = f->next)
		if (f->figures_noted)
			f->figures_noted(f, profile, id, last);
}

static bool figures_differ(const struct thread_figures *a, const struct thread_figures *b)
{
	return a->cpu_ns != b->cpu_ns || a->delay_ns != b->delay_ns;
}

// The thread has slept since its last figures, until a period before the new ones.
static void end_sleep(struct profile *profile, uint32_t id, int64_t at_ns)
{
	struct thread *thread = &profile->threads[id];

	if (figures_differ(&thread->last_figures, &thread->told_figures))
		tell_figures(profile, id);
	thread->last_figures.at_ns = at_ns - profile->period_ns;
}

static void set_figures(struct thread *thread, const struct thread_figures *figures)
{
	struct thread_figures *last = &thread->last_figures;

	// A thread that executes another program takes the main thread's tid, but has figures of
	// its own.
	if (last->at_ns == 0 || figures->cpu_ns < last->cpu_ns ||
	    figures->delay_ns < last->delay_ns)
		thread->first_figures = *figures;
	*last = *figures;
	thread->kernel_cpu_ns = last->cpu_ns - thread->first_figures.cpu_ns;
	thread->kernel_delay_ns = last->delay_ns - thread->first_figures.delay_ns;
}

void profile_take_figures(struct profile *profile, uint32_t id,
                          const struct thread_figures *figures)
{
	set_figures(&profile->threads[id], figures);
	tell_figures(profile, id);
}

void profile_note_figures(struct profile *profile, uint32_t id,
                          const struct thread_figures *figures)
{
	struct thread *thread = &profile->threads[id];
	const struct thread_figures *last = &thread->last_figures;

	if (last->at_ns == 0) {
		profile_take_figures(profile, id, figures);
		return;
	}
	// Lower ones were read before the last, at a stop that is counted only now; or the thread
	// has executed another program, and taken the main thread's tid: its figures are its own.
	if ((figures->cpu_ns < last->cpu_ns || figures->delay_ns < last->delay_ns) &&
	    figures->at_ns - last->at_ns < MAX_LATE_NS)
		return;
	if (figures_differ(figures, last)) {
		if (figures->at_ns - last->at_ns > 2 * profile->period_ns)
			end_sleep(profile, id, figures->at_ns);
		if (figures->at_ns - thread->told_figures.at_ns >= TELL_FIGURES_NS)
			tell_figures(profile, id);
	}
	set_figures(thread, figures);
}

void profile_figures(const struct profile *profile, uint32_t id, struct thread_figures *ret_from,
                     struct thread_figures *ret_to)
{
	const struct thread *thread = &profile->threads[id];

	if (profile->figures) {
		const struct figures_range none = {0};
		const struct figures_range *range =
		    id < profile->n_figures ? &profile->figures[id] : &none;
		*ret_from = range->from;
		*ret_to = range->to;
		return;
	}
	*ret_from = thread->first_figures;
	*ret_to = thread->last_figures;
	// A sleeper is not looked at: its figures stay.
	if (ret_to->at_ns != 0 && thread->last_ns > ret_to->at_ns)
		ret_to->at_ns = thread->last_ns;
}

void profile_tell_figures(const struct profile *profile)
{
	for (uint32_t id = 0; id < profile->n_threads; id++)
		tell_figures(profile, id);
}

void profile_end_thread(struct profile *profile, uint32_t id)
{
	if (profile->threads[id].ended)
		return;
	profile_end_span(profile, id);
	tell_figures(profile, id);
	profile->threads[id].ended = true;
	for (struct span_follower *f = profile->followers; f; f = f->next)
		if (f->thread_ended)
			f->thread_ended(f, profile, id);
}

void profile_end_spans(struct profile *profile)
{
	for (size_t i = 0; i < profile->n_threads; i++)
		profile_end_span(profile, i);
}

void profile_give_back(struct profile *profile, uint32_t id, int64_t end_ns)
{
	struct thread *thread = &profile->threads[id];

	if (end_ns < thread->span.start_ns)
		end_ns = thread->span.start_ns;
	const int64_t over_ns = thread->last_ns - end_ns;
	if (thread->span.count == 0 || over_ns <= 0)
		return;
	struct sample *sample = &profile->samples[thread->span.sample];
	sample->wall_ns -= over_ns;
	if (sample->state == THREAD_RUNNING)
		sample->cpu_ns -= over_ns;
	thread->last_ns = end_ns;
}

void profile_end_watch(struct profile *profile, int64_t end_ns)
{
	for (size_t i = 0; i < profile->n_threads; i++)
		profile_give_back(profile, i, end_ns);
	for (size_t i = 0; i < profile->n_threads; i++)
		tell_figures(profile, i);
	profile_end_spans(profile);
}

void profile_follow(struct profile *profile, struct span_follower *follower)
{
	follower->next = profile->followers;
	profile->followers = follower;
}

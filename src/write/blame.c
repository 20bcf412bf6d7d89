// SPDX-License-Identifier: MIT
#include "blame.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "slice.h"
#include "symbolize.h"
#include "timeline.h"

// Names of frames.
#define SEPARATOR "--"
#define MODULE "[blame]"
#define CIRCLE "[each waits for the next, in a circle]"

enum { SEPARATOR_ADDRESS, CIRCLE_ADDRESS };

struct named_thread {
	int id; // tid or pid
	uint32_t thread;
};

struct link {
	uint32_t thread;
	uint32_t sample; // what it does
};

// A sample of another stack.
struct made_sample {
	uint32_t sample, stack;
	uint32_t made; // its id
};

struct follower {
	struct profile *profile;
	struct blame *blame;
	struct named_thread *by_tid; // sorted; a tid may have been that of several
	struct named_thread *by_pid; // the same of processes
	struct thread_spans *of_thread;
	uint32_t separator, circle; // locations
	struct made_sample *made;
	size_t n_made, made_capacity;
	struct hash_index index; // of these
	struct span *spans;      // what the timeline will have
	size_t n_spans, spans_capacity;
	uint32_t *ids; // of the locations of a stack in the making
	size_t n_ids, ids_capacity;

	// The span that is followed: its ticks are given away from the first to the last.
	struct span span;
	uint64_t n_given;
	int64_t given_ns; // up to this time
};

static int compare_ids(const void *a_pointer, const void *b_pointer)
{
	const struct named_thread *a = a_pointer, *b = b_pointer;

	return (a->id > b->id) - (a->id < b->id);
}

static struct named_thread *sort_threads(const struct profile *profile, bool by_pid)
{
	struct named_thread *threads =
	    memory_alloc_zeroed(profile->n_threads + 1, sizeof(*threads));

	for (uint32_t i = 0; i < profile->n_threads; i++)
		threads[i] = (struct named_thread){
		    by_pid ? profile->threads[i].pid : profile->threads[i].tid, i};
	if (profile->n_threads > 0)
		qsort(threads, profile->n_threads, sizeof(*threads), compare_ids);
	return threads;
}

// Returns the position of the first of the sorted threads with that id.
static size_t first_thread(const struct named_thread *threads, size_t n, int id)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (threads[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// Finds the thread that had that tid then.
static bool find_thread(const struct follower *follower, int tid, int64_t at_ns, uint32_t *ret)
{
	const struct profile *profile = follower->profile;
	size_t low = first_thread(follower->by_tid, profile->n_threads, tid);

	for (; low < profile->n_threads && follower->by_tid[low].id == tid; low++) {
		*ret = follower->by_tid[low].thread;
		if (at_ns < profile->threads[*ret].last_ns)
			return profile->threads[*ret].first_ns <= at_ns;
	}
	return false;
}

// Finds the thread of a process that had but one then: of several, it is not known which one has
// the other end of a connection.
static bool find_single_thread(const struct follower *follower, int pid, int64_t at_ns,
                               uint32_t *ret)
{
	const struct profile *profile = follower->profile;
	size_t i = first_thread(follower->by_pid, profile->n_threads, pid);
	size_t n = 0;

	for (; i < profile->n_threads && follower->by_pid[i].id == pid && n < 2; i++) {
		const uint32_t id = follower->by_pid[i].thread;
		const struct thread *thread = &profile->threads[id];
		if (at_ns < thread->first_ns || at_ns >= thread->last_ns)
			continue;
		*ret = id;
		n++;
	}
	return n == 1;
}

static void push_stack(struct follower *follower, uint32_t sample)
{
	const struct profile *profile = follower->profile;
	const struct stack *stack = &profile->stacks[profile->samples[sample].stack];

	for (uint32_t i = 0; i < stack->n_frames; i++)
		*array_push(follower->ids, follower->n_ids, follower->ids_capacity) =
		    profile->location_ids[stack->first + i];
}

static void push_location(struct follower *follower, uint32_t location)
{
	*array_push(follower->ids, follower->n_ids, follower->ids_capacity) = location;
}

// Returns the stack of all links, the last one's leaf first.
static uint32_t join_stacks(struct follower *follower, const struct link *links, size_t n,
                            bool in_circle)
{
	struct profile *profile = follower->profile;
	const struct stack first = profile->stacks[profile->samples[links[0].sample].stack];

	follower->n_ids = 0;
	if (in_circle) {
		push_location(follower, follower->circle);
		push_location(follower, follower->separator);
	}
	for (size_t i = n; i-- > 1;) {
		push_stack(follower, links[i].sample);
		push_location(follower, follower->separator);
	}
	const uint32_t n_blamed = (uint32_t)follower->n_ids;
	push_stack(follower, links[0].sample);
	const uint32_t id =
	    profile_intern_stack(profile, follower->ids, follower->n_ids, first.end, first.guessed);
	if (profile->stacks[id].n_frames == follower->n_ids)
		profile->stacks[id].n_blamed = n_blamed;
	return id;
}

// Returns the id of the sample with another stack.
static uint32_t make_sample(struct follower *follower, uint32_t sample, uint32_t stack)
{
	struct profile *profile = follower->profile;
	const struct made_sample made = {.sample = sample, .stack = stack};
	const size_t n_before = follower->n_made;
	const uint32_t id =
	    hash_intern(&follower->index, follower->made, follower->n_made, follower->made_capacity,
	                made, offsetof(struct made_sample, made));

	if (id < n_before)
		return follower->made[id].made;
	struct sample copy = profile->samples[sample];
	copy.stack = stack;
	copy.count = 0;
	copy.wall_ns = copy.cpu_ns = 0;
	follower->made[id].made = (uint32_t)profile->n_samples;
	*array_push(profile->samples, profile->n_samples, profile->samples_capacity) = copy;
	return follower->made[id].made;
}

// The span's ticks up to that time. Those of two threads are a part of a period apart.
static uint64_t ticks_until(const struct follower *follower, int64_t ns)
{
	const struct span *span = &follower->span;
	const int64_t late_ns = ns + follower->profile->period_ns / 2;

	return late_ns >= span->end_ns ? span->count : span_ticks_before(span, late_ns);
}

enum outcome { FOLLOWED, UNSEEN, IN_CIRCLE };

// Gives the span's ticks up to that time to the stack of the links.
static void give(struct follower *follower, const struct link *links, size_t n, int64_t to_ns,
                 enum outcome outcome)
{
	const struct span *span = &follower->span;
	const uint64_t until = ticks_until(follower, to_ns);
	const int64_t length_ns = span->end_ns - span->start_ns;

	if (until <= follower->n_given)
		return;
	const int64_t end_ns =
	    span->start_ns + (int64_t)((__int128)length_ns * until / span->count);
	struct span part = {.thread = span->thread,
	                    .sample = span->sample,
	                    .count = until - follower->n_given,
	                    .start_ns = follower->given_ns,
	                    .end_ns = end_ns};
	const int64_t wall_ns = end_ns - follower->given_ns;
	if (n > 1 || outcome == IN_CIRCLE) {
		const uint32_t stack = join_stacks(follower, links, n, outcome == IN_CIRCLE);
		part.sample = make_sample(follower, span->sample, stack);
		follower->blame->followed_ns += wall_ns;
	}
	follower->blame->unseen_ns += outcome == UNSEEN ? wall_ns : 0;
	follower->blame->circle_ns += outcome == IN_CIRCLE ? wall_ns : 0;
	*array_push(follower->spans, follower->n_spans, follower->spans_capacity) = part;
	follower->n_given = until;
	follower->given_ns = end_ns;
}

// Whom a sample waits for. 0: it is not known.
struct holder {
	int tid;
	int pid; // of the other end of a connection or pipe
};

static struct holder holder_of(const struct profile *profile, uint32_t sample)
{
	const struct sample *waiting = &profile->samples[sample];

	if (!thread_state_is_blocked(waiting->state) || waiting->wait == WAIT_NONE)
		return (struct holder){0};
	const struct wait *wait = &profile->waits[waiting->wait];
	return (struct holder){.tid = wait_holder(wait), .pid = wait_peer(wait)};
}

static bool find_holder(const struct follower *follower, const struct holder *holder, int64_t at_ns,
                        uint32_t *ret)
{
	return holder->tid ? find_thread(follower, holder->tid, at_ns, ret)
	                   : find_single_thread(follower, holder->pid, at_ns, ret);
}

// True if one of the links from the i-th on waits for another end: each does so now and then, and
// that is no deadlock.
static bool has_peer(const struct profile *profile, const struct link *links, size_t i, size_t n)
{
	for (; i < n; i++)
		if (holder_of(profile, links[i].sample).tid == 0)
			return true;
	return false;
}

// Returns the position of the first span that ends after that time.
static size_t first_span(const struct thread_spans *spans, int64_t ns)
{
	size_t low = 0, high = spans->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (spans->spans[middle].end_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// Follows what the last link does from one time to the other.
static void follow(struct follower *follower, struct link *links, size_t n, int64_t from_ns,
                   int64_t to_ns)
{
	const struct holder wanted = holder_of(follower->profile, links[n - 1].sample);
	uint32_t holder = 0;

	if ((wanted.tid == 0 && wanted.pid == 0) || n > BLAME_MAX_LINKS) {
		give(follower, links, n, to_ns, FOLLOWED);
		return;
	}
	if (!find_holder(follower, &wanted, from_ns, &holder)) {
		give(follower, links, n, to_ns, UNSEEN);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (links[i].thread == holder) {
			// Who waits for the next question is not the cause of a wait for an answer:
			// one of the two was looked at too late.
			const bool turns = has_peer(follower->profile, links, i, n);
			give(follower, links, turns ? i + 1 : n, to_ns,
			     turns ? FOLLOWED : IN_CIRCLE);
			return;
		}
	const struct thread_spans *spans = &follower->of_thread[holder];
	for (size_t i = first_span(spans, from_ns); i < spans->count; i++) {
		const struct span *span = &spans->spans[i];
		const int64_t end_ns = span->end_ns < to_ns ? span->end_ns : to_ns;
		if (span->start_ns >= to_ns)
			break;
		if (span->start_ns > from_ns) {
			give(follower, links, n, span->start_ns, UNSEEN);
			from_ns = span->start_ns;
		}
		links[n] = (struct link){holder, span->sample};
		follow(follower, links, n + 1, from_ns, end_ns);
		from_ns = end_ns;
	}
	if (from_ns < to_ns)
		give(follower, links, n, to_ns, UNSEEN);
}

static void follow_span(struct follower *follower, const struct span *span)
{
	const struct profile *profile = follower->profile;
	struct link links[BLAME_MAX_LINKS + 1] = {{span->thread, span->sample}};

	if (thread_state_is_blocked(profile->samples[span->sample].state))
		follower->blame->blocked_ns += span->end_ns - span->start_ns;
	const struct holder holder = holder_of(profile, span->sample);
	if (holder.tid == 0 && holder.pid == 0) {
		*array_push(follower->spans, follower->n_spans, follower->spans_capacity) = *span;
		return;
	}
	follower->span = *span;
	follower->n_given = 0;
	follower->given_ns = span->start_ns;
	follow(follower, links, 1, span->start_ns, span->end_ns);
	give(follower, links, 1, span->end_ns, UNSEEN); // the first tick, which stands for no time
}

static uint32_t add_location(struct profile *profile, struct modules *modules,
                             struct symbols *symbols, uint64_t address, const char *name)
{
	const struct module *module = modules_add(modules, MODULE_RUNTIME, MODULE, 0, 0, -1);
	const uint32_t id = profile_intern_location(profile, module->index, address);

	symbols_add_name(symbols, profile->n_locations, id, name);
	return id;
}

void blame_follow(struct timeline *timeline, struct profile *profile, struct modules *modules,
                  struct symbols *symbols, struct blame *ret)
{
	size_t n_threads;
	_cleanup_free_ struct thread_spans *threads = timeline_by_thread(timeline, &n_threads);
	struct follower follower = {
	    .profile = profile,
	    .blame = ret,
	    .by_tid = sort_threads(profile, false),
	    .by_pid = sort_threads(profile, true),
	    .of_thread = memory_alloc_zeroed(profile->n_threads + 1, sizeof(*follower.of_thread)),
	    .separator = add_location(profile, modules, symbols, SEPARATOR_ADDRESS, SEPARATOR),
	    .circle = add_location(profile, modules, symbols, CIRCLE_ADDRESS, CIRCLE),
	};

	*ret = (struct blame){0};
	for (size_t i = 0; i < n_threads; i++)
		follower.of_thread[threads[i].thread] = threads[i];
	for (size_t i = 0; i < timeline->n_spans; i++)
		follow_span(&follower, &timeline->spans[i]);
	free(timeline->spans);
	timeline->spans = follower.spans;
	timeline->n_spans = follower.n_spans;
	timeline->spans_capacity = follower.spans_capacity;
	free(follower.by_tid);
	free(follower.by_pid);
	free(follower.of_thread);
	free(follower.made);
	free(follower.ids);
	hash_index_deinit(&follower.index);
}

struct sample *blame_sum(const struct timeline *timeline, const struct profile *profile,
                         size_t *ret_count)
{
	struct sample *sums = memory_alloc_zeroed(profile->n_samples + 1, sizeof(*sums));
	size_t n = 0;

	for (size_t i = 0; i < timeline->n_spans; i++) {
		const struct span *span = &timeline->spans[i];
		struct sample *sum = &sums[span->sample];
		const int64_t wall_ns = span->end_ns - span->start_ns;
		sum->count += span->count;
		sum->wall_ns += wall_ns;
		if (profile->samples[span->sample].state == THREAD_RUNNING)
			sum->cpu_ns += wall_ns;
	}
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample sum = sums[i];
		if (sum.count == 0)
			continue;
		sums[n] = profile->samples[i];
		sums[n].count = sum.count;
		sums[n].wall_ns = sum.wall_ns;
		sums[n++].cpu_ns = sum.cpu_ns;
	}
	*ret_count = n;
	return sums;
}

static bool is_at(const struct modules *modules, const struct location *location, uint64_t address)
{
	const struct module *module = modules->items[location->module];

	return location->address == address && module->kind == MODULE_RUNTIME &&
	       strcmp(module->path, MODULE) == 0;
}

bool blame_is_separator(const struct modules *modules, const struct location *location)
{
	return is_at(modules, location, SEPARATOR_ADDRESS);
}

bool blame_is_circle(const struct modules *modules, const struct location *location)
{
	return is_at(modules, location, CIRCLE_ADDRESS);
}

// SPDX-License-Identifier: MIT
#include "wait_groups.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "text.h"

// A task that waits for the object.
struct waiter {
	const char *object; // of the profile
	uint32_t thread;
	int64_t ns;
};

static int compare_waiters(const void *a_pointer, const void *b_pointer)
{
	const struct waiter *a = a_pointer, *b = b_pointer;
	const int order = strcmp(a->object, b->object);

	return order ? order : (a->thread > b->thread) - (a->thread < b->thread);
}

static int compare_groups(const void *a_pointer, const void *b_pointer)
{
	const struct wait_group *a = a_pointer, *b = b_pointer;

	if (a->is_lock != b->is_lock)
		return a->is_lock ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return strcmp(a->object, b->object);
}

// True for what lies at an address; a select waits for several things, and a descriptor has no
// address.
static bool is_object(const struct wait *wait)
{
	return wait->reason[0] && strstr(wait->descriptor, " 0x") &&
	       !strstr(wait->descriptor, " +");
}

static bool is_lock(const char *object)
{
	return text_begins_with(object, "mutex ") || text_begins_with(object, "rwmutex ") ||
	       text_begins_with(object, "sema ");
}

// Returns how long the sample's wait has lasted; -1: not known.
static int64_t wait_ns(const struct profile *profile, const struct sample *sample)
{
	const struct thread *thread = &profile->threads[sample->thread];

	if (sample->is_one_wait)
		return sample->wall_ns;
	if (thread->waits_since_ns <= 0 || thread->waits_since_ns > thread->last_ns)
		return -1;
	return thread->last_ns - thread->waits_since_ns;
}

static struct waiter *find_waiters(const struct profile *profile, size_t *ret_count)
{
	struct waiter *waiters = NULL;
	size_t count = 0, capacity = 0;

	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		if (sample->count == 0 || sample->wait == WAIT_NONE ||
		    !is_object(&profile->waits[sample->wait]))
			continue;
		*array_push(waiters, count, capacity) = (struct waiter){
		    .object = profile->waits[sample->wait].descriptor,
		    .thread = sample->thread,
		    .ns = wait_ns(profile, sample),
		};
	}
	if (count > 0)
		qsort(waiters, count, sizeof(*waiters), compare_waiters);
	*ret_count = count;
	return waiters;
}

struct wait_group *wait_groups_find(const struct profile *profile, size_t *ret_count)
{
	struct wait_group *groups = NULL;
	size_t n_waiters, n = 0, capacity = 0, kept = 0;
	_cleanup_free_ struct waiter *waiters = find_waiters(profile, &n_waiters);

	for (size_t i = 0; i < n_waiters; i++) {
		const struct waiter *waiter = &waiters[i];
		const bool is_first = i == 0 || strcmp(waiter[-1].object, waiter->object) != 0;
		if (is_first)
			*array_push(groups, n, capacity) = (struct wait_group){
			    .object = waiter->object,
			    .oldest_ns = -1,
			    .is_lock = is_lock(waiter->object),
			};
		struct wait_group *group = &groups[n - 1];
		group->count += is_first || waiter[-1].thread != waiter->thread;
		if (waiter->ns > group->oldest_ns)
			group->oldest_ns = waiter->ns;
	}
	for (size_t i = 0; i < n; i++)
		if (groups[i].count > 1)
			groups[kept++] = groups[i];
	if (kept > 0)
		qsort(groups, kept, sizeof(*groups), compare_groups);
	*ret_count = kept;
	return groups;
}

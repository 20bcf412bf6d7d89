// SPDX-License-Identifier: MIT
#include "runtimes.h"

#include <string.h>

#include "address_space.h"
#include "clock.h"
#include "hash.h"
#include "memory.h"
#include "python_kind.h"
#include "runtime_kind.h"
#include "snapshot.h"

_Static_assert((int)RUNTIMES_MAX <= SNAPSHOT_MAX_NOTES, "a note of each");

// Until a runtime is looked for again that could not be told.
#define MIN_WAIT_NS NS_PER_MS
#define MAX_WAIT_NS NS_PER_SECOND

// Their positions are those of their bits, and of their notes.
static const struct runtime_kind *const kinds[RUNTIMES_MAX] = {&python_kind};

static bool find_kind(const char *name, size_t length, unsigned int *ret)
{
	for (unsigned int i = 0; i < RUNTIMES_MAX; i++) {
		if (!kinds[i] || strlen(kinds[i]->name) != length ||
		    memcmp(kinds[i]->name, name, length) != 0)
			continue;
		*ret |= 1u << i;
		return true;
	}
	return false;
}

bool runtimes_parse(const char *list, unsigned int *ret)
{
	unsigned int bits = 0;

	if (strcmp(list, "none") == 0 || strcmp(list, "auto") == 0) {
		*ret = list[0] == 'a' ? ~0u : 0;
		return true;
	}
	for (const char *name = list;; name++) {
		const size_t length = strcspn(name, ",");
		if (length == strlen("go") && memcmp(name, "go", length) == 0)
			bits |= RUNTIMES_GO;
		else if (!find_kind(name, length, &bits))
			return false;
		name += length;
		if (*name == '\0')
			break;
	}
	*ret = bits;
	return true;
}

void runtimes_init(struct runtimes *runtimes, const struct runtimes_setup *setup)
{
	*runtimes = (struct runtimes){.setup = *setup};
}

static void forget_all(void **runtimes)
{
	for (size_t i = 0; i < RUNTIMES_MAX; i++) {
		void *runtime = take_pointer(runtimes[i]);
		if (runtime)
			kinds[i]->destroy(runtime);
	}
}

static void forget(struct runtimes *runtimes)
{
	forget_all(runtimes->found);
	forget_all(runtimes->early);
}

void runtimes_deinit(struct runtimes *runtimes)
{
	forget(runtimes);
	*runtimes = (struct runtimes){0};
}

// A program that makes code has ever new mappings, but hardly ever new files.
static uint64_t hash_files(const struct maps *maps)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->items[i];
		if (mapping->inode && mapping->file_offset == 0)
			hash = hash_mix(hash, hash_mix(mapping->start, mapping->inode));
	}
	return hash;
}

static void find_all(struct runtimes *runtimes, int tid, int64_t now_ns)
{
	const int64_t wait_ns = 2 * runtimes->wait_ns;
	bool has_early = false;

	forget_all(runtimes->early);
	for (size_t i = 0; i < RUNTIMES_MAX && !runtimes->setup.space->is_foreign; i++) {
		bool is_early = false;
		if (!kinds[i] || runtimes->found[i] || !(runtimes->setup.kinds >> i & 1))
			continue;
		void *runtime = kinds[i]->find(&runtimes->setup, tid, &is_early);
		*(is_early ? &runtimes->early[i] : &runtimes->found[i]) = runtime;
		has_early |= is_early;
	}
	runtimes->wait_ns = wait_ns < MIN_WAIT_NS   ? MIN_WAIT_NS
	                    : wait_ns > MAX_WAIT_NS ? MAX_WAIT_NS
	                                            : wait_ns;
	runtimes->again_ns = has_early ? now_ns + runtimes->wait_ns : 0;
}

static void find(struct runtimes *runtimes, int tid, int64_t now_ns)
{
	const struct address_space *space = runtimes->setup.space;
	const bool again = runtimes->again_ns && now_ns >= runtimes->again_ns;

	if (runtimes->looked && runtimes->generation == space->generation && !again)
		return;
	if (runtimes->start_stack != space->start_stack)
		forget(runtimes); // another program is executed
	const uint64_t hash = hash_files(&space->maps);
	const bool same = runtimes->looked && hash == runtimes->files_hash &&
	                  runtimes->start_stack == space->start_stack;
	runtimes->looked = true;
	runtimes->generation = space->generation;
	runtimes->start_stack = space->start_stack;
	runtimes->files_hash = hash;
	if (!same)
		runtimes->wait_ns = 0;
	if (!same || again)
		find_all(runtimes, tid, now_ns);
}

void runtimes_update(struct runtimes *runtimes, int tid, int64_t now_ns)
{
	find(runtimes, tid, now_ns);
	for (size_t i = 0; i < RUNTIMES_MAX; i++)
		if (runtimes->found[i])
			kinds[i]->update(runtimes->found[i], tid, now_ns);
}

char *runtimes_name_futex(const struct runtimes *runtimes, int tid, uint64_t futex)
{
	char *name = NULL;

	for (size_t i = 0; i < RUNTIMES_MAX && !name; i++)
		if (runtimes->found[i])
			name = kinds[i]->name_futex(runtimes->found[i], tid, futex);
	return name;
}

char *runtimes_name_thread(const struct runtimes *runtimes, int tid)
{
	char *name = NULL;

	for (size_t i = 0; i < RUNTIMES_MAX && !name; i++)
		if (runtimes->found[i])
			name = kinds[i]->name_thread(runtimes->found[i], tid);
	return name;
}

void runtimes_look_ahead(const struct runtimes *runtimes, int tid,
                         const struct snapshot_buffer *buffer)
{
	for (size_t i = 0; i < RUNTIMES_MAX; i++) {
		size_t room = 0;
		if (!runtimes->found[i])
			continue;
		void *note = buffer ? snapshot_buffer_begin_note(buffer, &room) : NULL;
		kinds[i]->look_ahead(runtimes->found[i], tid, note, room);
	}
}

void runtimes_read(const struct runtimes *runtimes, int tid, struct snapshot_buffer *buffer,
                   struct snapshot *snapshot)
{
	for (size_t i = 0; i < RUNTIMES_MAX; i++) {
		size_t room;
		void *note = runtimes->found[i] ? snapshot_buffer_begin_note(buffer, &room) : NULL;
		if (!note)
			continue;
		const size_t size = kinds[i]->read(runtimes->found[i], tid, snapshot, note, room);
		snapshot_buffer_end_note(buffer, size, i, snapshot);
	}
}

bool runtimes_merge(struct runtimes *runtimes, int tid, const struct snapshot *snapshot,
                    struct unwound *stack)
{
	// What tells the version may never come, and a look at each sleeper in each tick costs
	// time.
	const bool is_late = runtimes->wait_ns == MAX_WAIT_NS;
	bool is_known = true;

	for (size_t i = 0; i < RUNTIMES_MAX; i++) {
		const struct snapshot_note *note = &snapshot->notes[i];
		if (runtimes->found[i])
			is_known &= kinds[i]->merge(runtimes->found[i], tid, snapshot, note, stack);
		else if (runtimes->early[i])
			is_known &=
			    kinds[i]->merge(runtimes->early[i], tid, snapshot, note, stack) ||
			    is_late;
	}
	return is_known;
}

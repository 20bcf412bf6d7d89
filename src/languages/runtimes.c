// SPDX-License-Identifier: MIT
#include "runtimes.h"

#include <assert.h>
#include <string.h>

#include "address_space.h"
#include "clock.h"
#include "hash.h"
#include "language.h"
#include "run_stats.h"
#include "snapshot.h"

// Until a runtime is looked for again that could not be told.
#define MIN_WAIT_NS NS_PER_MS
#define MAX_WAIT_NS NS_PER_SECOND

// A language's position in the table is that of its bit.
static bool find_kind(const char *name, size_t length, unsigned int *ret)
{
	for (unsigned int i = 0; i < LANGUAGES_MAX; i++) {
		const struct language *language = languages[i];
		if (!language || !(language->find || language->tasks) ||
		    strlen(language->name) != length || memcmp(language->name, name, length) != 0)
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
		if (!find_kind(name, length, &bits))
			return false;
		name += length;
		if (*name == '\0')
			break;
	}
	*ret = bits;
	return true;
}

struct run_language *runtimes_figures(const struct runtimes_setup *setup,
                                      const struct language *language)
{
	static_assert((int)RUN_MAX_LANGUAGES >= (int)LANGUAGES_MAX, "each has a place");

	return &setup->stats->languages[language_position(language)];
}

void runtimes_init(struct runtimes *runtimes, const struct runtimes_setup *setup)
{
	*runtimes = (struct runtimes){.setup = *setup};
}

static void forget(struct runtimes *runtimes)
{
	languages_forget(runtimes->setup.space->languages);
	languages_forget(runtimes->early);
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
	struct address_space *space = runtimes->setup.space;
	bool has_early = false;

	languages_forget(runtimes->early);
	for (size_t i = 0; i < LANGUAGES_MAX && !space->is_foreign; i++) {
		bool is_early = false;
		if (!languages[i] || !languages[i]->find || space->languages[i] ||
		    !(runtimes->setup.kinds >> i & 1))
			continue;
		void *runtime = languages[i]->find(&runtimes->setup, tid, &is_early);
		*(is_early ? &runtimes->early[i] : &space->languages[i]) = runtime;
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
	void **found = runtimes->setup.space->languages;

	find(runtimes, tid, now_ns);
	for (size_t i = 0; i < LANGUAGES_MAX; i++)
		if (found[i] && languages[i]->update)
			languages[i]->update(found[i], tid, now_ns);
}

char *runtimes_name_futex(const struct runtimes *runtimes, int tid, uint64_t futex)
{
	void **found = runtimes->setup.space->languages;
	char *name = NULL;

	for (size_t i = 0; i < LANGUAGES_MAX && !name; i++)
		if (found[i] && languages[i]->name_futex)
			name = languages[i]->name_futex(found[i], tid, futex);
	return name;
}

char *runtimes_name_thread(const struct runtimes *runtimes, int tid)
{
	void **found = runtimes->setup.space->languages;
	char *name = NULL;

	for (size_t i = 0; i < LANGUAGES_MAX && !name; i++)
		if (found[i] && languages[i]->name_thread)
			name = languages[i]->name_thread(found[i], tid);
	return name;
}

void runtimes_look_ahead(const struct runtimes *runtimes, int tid,
                         const struct snapshot_buffer *buffer)
{
	void **found = runtimes->setup.space->languages;

	for (size_t i = 0; i < LANGUAGES_MAX; i++) {
		size_t room = 0;
		if (!found[i] || !languages[i]->look_ahead)
			continue;
		void *note = buffer ? snapshot_buffer_begin_note(buffer, &room) : NULL;
		languages[i]->look_ahead(found[i], tid, note, room);
	}
}

void runtimes_read(const struct runtimes *runtimes, int tid, struct snapshot_buffer *buffer,
                   struct snapshot *snapshot)
{
	void **found = runtimes->setup.space->languages;

	for (size_t i = 0; i < LANGUAGES_MAX; i++) {
		size_t room;
		if (!found[i] || !languages[i]->read)
			continue;
		void *note = snapshot_buffer_begin_note(buffer, &room);
		if (!note)
			continue;
		const size_t size = languages[i]->read(found[i], tid, snapshot, note, room);
		snapshot_buffer_end_note(buffer, size, i, snapshot);
	}
}

bool runtimes_merge(struct runtimes *runtimes, int tid, const struct snapshot *snapshot,
                    struct unwound *stack)
{
	// What tells the version may never come, and a look at each sleeper in each tick costs
	// time.
	const bool is_late = runtimes->wait_ns == MAX_WAIT_NS;
	void **found = runtimes->setup.space->languages;
	bool is_known = true;

	for (size_t i = 0; i < LANGUAGES_MAX; i++) {
		const struct snapshot_note *note = &snapshot->notes[i];
		if (found[i] && languages[i]->merge)
			is_known &= languages[i]->merge(found[i], tid, snapshot, note, stack);
		else if (runtimes->early[i])
			is_known &=
			    languages[i]->merge(runtimes->early[i], tid, snapshot, note, stack) ||
			    is_late;
	}
	return is_known;
}

// SPDX-License-Identifier: MIT
#include "waits.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "profile.h"
#include "text.h"

enum {
	MAX_WAITS = 1 << 16,
	MAX_FOLDED = 1 << 12, // beyond them: few system calls wait for few sorts of things
};

static bool wait_equal(const void *context, uint32_t id, const void *key)
{
	const struct profile *profile = context;
	const struct wait *a = &profile->waits[id], *b = key;

	return a->syscall == b->syscall && strcmp(a->descriptor, b->descriptor) == 0 &&
	       strcmp(a->frames, b->frames) == 0 && strcmp(a->reason, b->reason) == 0;
}

static uint64_t hash_wait(const struct wait *wait)
{
	const uint64_t descriptor = hash_bytes(wait->descriptor, strlen(wait->descriptor));
	const uint64_t frames = hash_bytes(wait->frames, strlen(wait->frames));
	const uint64_t reason = hash_bytes(wait->reason, strlen(wait->reason));

	return hash_mix(hash_mix(descriptor, frames), hash_mix(reason, (uint64_t)wait->syscall));
}

static void add_wait(struct profile *profile, const struct wait *wait)
{
	*array_push(profile->waits, profile->n_waits, profile->waits_capacity) = (struct wait){
	    .syscall = wait->syscall,
	    .descriptor = memory_strdup(wait->descriptor),
	    .frames = memory_strdup(wait->frames),
	    .reason = memory_strdup(wait->reason),
	};
}

void waits_add_none(struct profile *profile)
{
	static const struct wait none = {
	    .syscall = NO_SYSCALL, .descriptor = "", .frames = "", .reason = ""};

	if (profile->n_waits == 0)
		add_wait(profile, &none);
}

static uint32_t find(const struct profile *profile, const struct wait *key)
{
	return hash_index_find(&profile->wait_index, hash_wait(key), wait_equal, profile, key);
}

static uint32_t add(struct profile *profile, const struct wait *key)
{
	waits_add_none(profile);
	const uint32_t id = profile->n_waits;
	add_wait(profile, key);
	hash_index_insert(&profile->wait_index, hash_wait(key), id);
	return id;
}

// Returns what remains of a descriptor or an object if there are too many different ones: which
// sort it is, as "socket:[...]", "/[...]" or "mutex [...]". The caller frees.
static char *fold(const char *text)
{
	const size_t length = strcspn(text, "[/ 0123456789");
	const bool keeps = text[length] == '/' || text[length] == ' ';

	if (!text[length])
		return memory_strdup(text); // eventfd, epoll: there are few
	return memory_printf("%.*s" WAIT_FOLDED, (int)(length + keeps), text);
}

static uint32_t intern_folded(struct profile *profile, const struct wait *whole)
{
	_cleanup_free_ char *descriptor = fold(whole->descriptor);
	struct wait key = *whole;

	key.descriptor = descriptor;
	if (key.frames[0])
		key.frames = (char *)WAIT_FOLDED "\n";
	uint32_t id = find(profile, &key);
	if (id == HASH_NONE && profile->n_waits < MAX_WAITS + MAX_FOLDED)
		id = add(profile, &key);
	return id;
}

uint32_t profile_intern_wait(struct profile *profile, int syscall, const char *descriptor,
                             const char *frames)
{
	const struct wait key = {.syscall = syscall,
	                         .descriptor = (char *)descriptor,
	                         .frames = (char *)frames,
	                         .reason = ""};
	const bool simple = !descriptor[0] && !frames[0];

	if (simple && syscall == NO_SYSCALL)
		return WAIT_NONE;
	uint32_t id = find(profile, &key);
	if (id != HASH_NONE)
		return id;
	if (simple || profile->n_waits < MAX_WAITS)
		return add(profile, &key);
	id = intern_folded(profile, &key);
	return id != HASH_NONE ? id : profile_intern_wait(profile, syscall, "", "");
}

uint32_t profile_intern_reason(struct profile *profile, const char *reason, const char *object)
{
	const struct wait key = {.syscall = NO_SYSCALL,
	                         .descriptor = (char *)object,
	                         .frames = "",
	                         .reason = (char *)reason};

	if (!reason[0])
		return WAIT_NONE;
	uint32_t id = find(profile, &key);
	if (id != HASH_NONE)
		return id;
	if (profile->n_waits < MAX_WAITS)
		return add(profile, &key);
	// The target has few such words, unless it wants the table to grow.
	id = intern_folded(profile, &key);
	return id != HASH_NONE ? id : WAIT_NONE;
}

bool profile_wait_is_folded(const struct wait *wait)
{
	const size_t length = strlen(wait->descriptor), tail = strlen(WAIT_FOLDED);

	return strcmp(wait->frames, WAIT_FOLDED "\n") == 0 ||
	       (length >= tail && strcmp(wait->descriptor + length - tail, WAIT_FOLDED) == 0);
}

void profile_explain_descriptor(struct profile *profile, uint32_t wait, const char *meaning)
{
	free(profile->waits[wait].meaning);
	profile->waits[wait].meaning = memory_strdup(meaning);
}

// Returns the number behind a name in quotes that the text ends with; 0: there is none.
static int last_number(const char *text)
{
	const char *quote = strrchr(text, '"');
	char *end;

	if (!quote)
		return 0;
	const long number = strtol(quote + 1, &end, 10);
	return *end == '\0' && number > 0 && number <= INT_MAX ? (int)number : 0;
}

int wait_peer(const struct wait *wait)
{
	const char *text = wait->meaning ?: "";

	if (strstr(text, WAIT_OTHER_END "\""))
		return last_number(text);
	text = wait->descriptor;
	return text_begins_with(text, WAIT_FILE_LOCK) && strstr(text, WAIT_FILE_LOCK_HOLDER "\"")
	           ? last_number(text)
	           : 0;
}

int wait_text_holder(const char *text)
{
	static const char held_by[] = WAIT_HOLDER "\"", end_of[] = "the end of \"";

	// What a descriptor is may be any path.
	if (text[0] == '/' || (!strstr(text, held_by) && !text_begins_with(text, end_of)))
		return 0;
	return last_number(text);
}

int wait_holder(const struct wait *wait)
{
	return wait_text_holder(wait->descriptor);
}

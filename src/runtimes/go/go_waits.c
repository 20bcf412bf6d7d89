// SPDX-License-Identifier: MIT
#include "go_waits.h"

#include <limits.h>
#include <string.h>

#include "go_program.h"
#include "goroutines.h"
#include "memory.h"
#include "snapshot.h"

enum {
	WORD = 8,
	MAX_WORDS = 128,     // of the innermost frames, that are looked through
	MAX_CANDIDATES = 64, // of them, that are followed
	MAX_CASES = 64,      // of a select, that are counted
};

// What the reasons of sync's are about (runtime2.go, waitReasonStrings), and where its semaphore is
// in it (sync.Mutex: state, sema; sync.RWMutex: w, writerSem, readerSem; sync.Cond: L, notify).
static const struct {
	const char *reason, *what;
	uint8_t offset;
} semaphores[] = {
    {"sync.Mutex.Lock", "mutex", 4},         {"sync.RWMutex.RLock", "rwmutex", 12},
    {"sync.RWMutex.Lock", "rwmutex", 8},     {"sync.Cond.Wait", "cond", 16},
    {"sync.WaitGroup.Wait", "waitgroup", 8}, {"semacquire", "sema", 0},
};

struct search {
	const struct go_program *program;
	const struct go_memory *memory;
	const struct goroutine *goroutine;
};

// A word of what lies at the address; 0: it cannot be read, or the version has no such field.
static uint64_t field(const struct search *search, uint64_t address, uint16_t offset)
{
	uint64_t word;

	if (offset == GO_NO_FIELD || address % WORD != 0 ||
	    !go_memory_read(search->memory, address + offset, &word, sizeof(word)))
		return 0;
	return word;
}

// Calls visit for each word of the innermost frames that may be an address, until it has found what
// it looks for.
static void search_stack(const struct search *search, const struct snapshot *snapshot,
                         bool (*visit)(const struct search *search, uint64_t address,
                                       struct go_wait *ret),
                         struct go_wait *ret)
{
	const struct snapshot_region *region = &snapshot->regions[0];
	const struct goroutine *goroutine = search->goroutine;
	int n_left = MAX_CANDIDATES;

	for (size_t i = 0; i < MAX_WORDS && (i + 1) * WORD <= region->size && n_left > 0; i++) {
		uint64_t word;
		memcpy(&word, region->bytes + i * WORD, WORD);
		if (word == 0 || word % WORD != 0 || word == goroutine->address ||
		    (word >= goroutine->low && word < goroutine->high))
			continue;
		n_left--;
		if (visit(search, word, ret))
			return;
	}
}

// One that was put back has no element.
static bool visit_sudog(const struct search *search, uint64_t address, struct go_wait *ret)
{
	const struct go_offsets *offsets = &search->program->offsets;

	if (offsets->element == GO_NO_FIELD ||
	    field(search, address, 0) != search->goroutine->address)
		return false;
	ret->address = field(search, address, offsets->element);
	return ret->address != 0;
}

static bool visit_poll(const struct search *search, uint64_t address, struct go_wait *ret)
{
	const struct go_offsets *offsets = &search->program->offsets;
	const uint64_t self = search->goroutine->address;

	if (offsets->poll_fd == GO_NO_FIELD ||
	    (field(search, address, offsets->poll_reader) != self &&
	     field(search, address, offsets->poll_writer) != self))
		return false;
	const uint64_t descriptor = field(search, address, offsets->poll_fd);
	ret->descriptor = descriptor <= INT_MAX ? (int)descriptor : GO_NO_DESCRIPTOR;
	return true;
}

// A select waits by one sudog for each case, by the address of its channel.
static void find_channel(const struct search *search, struct go_wait *ret)
{
	const struct go_offsets *offsets = &search->program->offsets;
	uint64_t sudog = search->goroutine->waiting, last = 0;
	size_t n = 0;

	for (int i = 0; i < MAX_CASES && sudog; i++) {
		const uint64_t channel = field(search, sudog, offsets->channel);
		if (i == 0)
			ret->address = channel;
		n += channel != 0 && channel != last;
		last = channel;
		sudog = field(search, sudog, offsets->next_waiting);
	}
	ret->n_more = n > 0 ? n - 1 : 0;
	ret->what = ret->address ? "chan" : NULL;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

void go_wait_find(const struct go_program *program, const struct go_memory *memory,
                  const struct goroutine *goroutine, const char *reason,
                  const struct snapshot *snapshot, struct go_wait *ret)
{
	const struct search search = {program, memory, goroutine};

	*ret = (struct go_wait){.descriptor = GO_NO_DESCRIPTOR};
	if (begins(reason, "chan ") || begins(reason, "select"))
		find_channel(&search, ret);
	else if (strcmp(reason, "IO wait") == 0)
		search_stack(&search, snapshot, visit_poll, ret);
	for (size_t i = 0; i < array_size(semaphores); i++) {
		if (strcmp(reason, semaphores[i].reason) != 0)
			continue;
		search_stack(&search, snapshot, visit_sudog, ret);
		if (ret->address <= semaphores[i].offset)
			continue;
		ret->what = semaphores[i].what;
		ret->address -= semaphores[i].offset;
	}
}

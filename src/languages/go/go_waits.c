// SPDX-License-Identifier: MIT
#include "go_waits.h"

#include <limits.h>
#include <string.h>

#include "go_program.h"
#include "goroutines.h"
#include "memory.h"
#include "resident.h"
#include "snapshot.h"
#include "text.h"

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

enum { POLLED = array_size(semaphores) }; // the last kind (go_wait_hints)
_Static_assert((int)POLLED < (int)GO_WAIT_KINDS && MAX_WORDS <= UINT8_MAX, "they fit");

struct search {
	const struct go_program *program;
	const struct go_memory *memory;
	const struct task *goroutine;
	const struct resident_block *known; // what was read already
};

// A word of what lies at the address; 0: it cannot be read, or the version has no such field.
static uint64_t field(const struct search *search, uint64_t address, uint16_t offset)
{
	const struct resident_block *known = search->known;
	uint64_t word;

	if (offset == GO_NO_FIELD || address % WORD != 0)
		return 0;
	if (known->is_read && known->address == address && (size_t)offset + WORD <= known->size)
		memcpy(&word, (const uint8_t *)known->bytes + offset, WORD);
	else if (!go_memory_read(search->memory, address + offset, &word, sizeof(word)))
		return 0;
	return word;
}

// The i-th word of the innermost frames; 0: it is not there, or cannot be an address.
static uint64_t word_at(const struct task *goroutine, const struct snapshot *snapshot, size_t i)
{
	const struct snapshot_region *region = &snapshot->regions[0];
	uint64_t word;

	if ((i + 1) * WORD > region->size)
		return 0;
	memcpy(&word, region->bytes + i * WORD, WORD);
	return word % WORD != 0 || word == goroutine->address ||
	               (word >= goroutine->low && word < goroutine->high)
	           ? 0
	           : word;
}

typedef bool visit_fn(const struct search *search, uint64_t address, struct go_wait *ret);

// Calls visit for each word of the innermost frames that may be an address, until it has found what
// it looks for.
static void search_all(const struct search *given, const struct snapshot *snapshot, visit_fn *visit,
                       uint8_t *hint, struct go_wait *ret)
{
	struct search search = *given;
	struct resident_block blocks[MAX_CANDIDATES];
	uint8_t bytes[MAX_CANDIDATES][GO_WAIT_BYTES], places[MAX_CANDIDATES];
	size_t n = 0;

	for (size_t i = 0; i < MAX_WORDS && n < MAX_CANDIDATES; i++) {
		const uint64_t word = word_at(search.goroutine, snapshot, i);
		if (!word)
			continue;
		// cppcheck-suppress legacyUninitvar ; it is what is read into
		blocks[n] = (struct resident_block){word, bytes[n], GO_WAIT_BYTES, false};
		places[n++] = (uint8_t)i;
	}
	resident_read_blocks(search.memory->resident, search.memory->tid, blocks, n);
	for (size_t i = 0; i < n; i++) {
		search.known = &blocks[i];
		if (!visit(&search, blocks[i].address, ret))
			continue;
		*hint = places[i];
		return;
	}
}

// Looks first where the last one was.
static void search_stack(const struct search *search, const struct snapshot *snapshot,
                         visit_fn *visit, uint8_t *hint, struct go_wait *ret)
{
	const uint64_t first = word_at(search->goroutine, snapshot, *hint);

	if (!first || !visit(search, first, ret))
		search_all(search, snapshot, visit, hint, ret);
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

// A select waits by one sudog for each case, by the address of its channel. The first one is known.
static void find_channel(const struct search *given, struct go_wait *ret)
{
	const struct go_offsets *offsets = &given->program->offsets;
	struct search search = *given;
	uint64_t sudog = search.goroutine->waiting, last = 0;
	uint8_t bytes[GO_WAIT_BYTES];
	struct resident_block next;
	size_t n = 0;

	for (int i = 0; i < MAX_CASES && sudog; i++) {
		const uint64_t channel = field(&search, sudog, offsets->channel);
		if (i == 0)
			ret->address = channel;
		n += channel != 0 && channel != last;
		last = channel;
		sudog = field(&search, sudog, offsets->next_waiting);
		// cppcheck-suppress legacyUninitvar ; it is what is read into
		next = (struct resident_block){sudog, bytes, sudog ? sizeof(bytes) : 0, false};
		resident_read_blocks(search.memory->resident, search.memory->tid, &next, 1);
		search.known = &next;
	}
	ret->n_more = n > 0 ? n - 1 : 0;
	ret->what = ret->address ? "chan" : NULL;
}

// Returns by which kind of hint it is found; GO_WAIT_KINDS: by none.
static size_t kind_of(const char *reason)
{
	if (strcmp(reason, "IO wait") == 0)
		return POLLED;
	for (size_t i = 0; i < array_size(semaphores); i++)
		if (strcmp(reason, semaphores[i].reason) == 0)
			return i;
	return GO_WAIT_KINDS;
}

static bool is_of_channels(const char *reason)
{
	return text_begins_with(reason, "chan ") || text_begins_with(reason, "select");
}

uint64_t go_wait_guess(const struct go_program *program, const struct task *goroutine,
                       const struct snapshot *snapshot, const struct go_wait_hints *hints)
{
	const char *reason = goroutine_reason(program, goroutine);
	const size_t kind = kind_of(reason);

	if (goroutine->status != GOROUTINE_WAITING)
		return 0;
	if (is_of_channels(reason))
		return goroutine->waiting;
	return kind < GO_WAIT_KINDS ? word_at(goroutine, snapshot, hints->words[kind]) : 0;
}

void go_wait_find(const struct go_program *program, const struct go_memory *memory,
                  const struct task *goroutine, const struct snapshot *snapshot,
                  const struct resident_block *guess, struct go_wait_hints *hints,
                  struct go_wait *ret)
{
	const char *reason = goroutine_reason(program, goroutine);
	const size_t kind = kind_of(reason);
	struct search search = {program, memory, goroutine, guess};

	*ret = (struct go_wait){.descriptor = GO_NO_DESCRIPTOR};
	if (goroutine->status != GOROUTINE_WAITING)
		return;
	if (is_of_channels(reason))
		find_channel(&search, ret);
	else if (kind == POLLED)
		search_stack(&search, snapshot, visit_poll, &hints->words[kind], ret);
	else if (kind < array_size(semaphores))
		search_stack(&search, snapshot, visit_sudog, &hints->words[kind], ret);
	if (kind >= array_size(semaphores) || ret->address <= semaphores[kind].offset)
		return;
	ret->what = semaphores[kind].what;
	ret->address -= semaphores[kind].offset;
}

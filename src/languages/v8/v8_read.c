// SPDX-License-Identifier: MIT
#include <string.h>

#include "runtimes.h"
#include "snapshot.h"
#include "v8.h"

enum {
	WORD = 8,
	MAX_WORDS = 1 << 19,       // of the stack that are looked at
	MAX_FRAME_BYTES = 1 << 20, // of one frame
	SLOTS = 2048,              // of the table of functions
	MAX_SAME = 4,              // entries of one function
	// The words of a frame, below its fp.
	CONTEXT = 1,
	FUNCTION = 2,
	BYTECODES = 4,
	BYTECODE = 5, // the offset of the bytecode
	N_BELOW = 5,
};

// What is used while the note is made. Its functions are moved to their place at the end.
struct work {
	struct v8_noted functions[V8_MAX_FUNCTIONS];
	struct resident_block blocks[2 * V8_MAX_FUNCTIONS];
	uint16_t slots[SLOTS]; // a function's number + 1, by hash; 0: free
};

struct reading {
	const struct v8 *v8;
	int tid;
	struct v8_note *note;
	struct v8_frame *frames;
	struct work *work;
	size_t n_words; // that were looked at
};

static size_t slot_of(uint64_t function)
{
	return function * 0x9e3779b97f4a7c15u >> 53;
}

// Returns the number of the function with these words, a new or a known one; V8_MAX_FUNCTIONS:
// there are too many. In frames of compiled code the second word is any value: few are kept.
static uint32_t number_of(struct reading *reading, uint64_t function, uint64_t bytecodes)
{
	struct work *work = reading->work;
	uint32_t *n = &reading->note->n_functions;
	size_t slot = slot_of(function);
	uint32_t first = 0;
	size_t n_same = 0;

	for (; work->slots[slot]; slot = (slot + 1) % SLOTS) {
		const uint32_t number = work->slots[slot] - 1u;
		const struct v8_noted *known = &work->functions[number];
		if (known->function != function)
			continue;
		if (known->bytecodes == bytecodes)
			return number;
		if (n_same++ == 0)
			first = number;
	}
	if (n_same >= MAX_SAME)
		return first;
	if (*n == V8_MAX_FUNCTIONS)
		return V8_MAX_FUNCTIONS;
	work->functions[*n] = (struct v8_noted){.function = function, .bytecodes = bytecodes};
	work->slots[slot] = (uint16_t)++ * n;
	return *n - 1;
}

// Notes the frame whose fp points to the word.
static void add_frame(struct reading *reading, const uint64_t *words, uint64_t fp)
{
	const uint64_t bytecodes = *(words - BYTECODES);
	const bool may_be_interpreted = v8_is_object(bytecodes) && v8_is_smi(*(words - BYTECODE));
	const uint32_t number =
	    number_of(reading, *(words - FUNCTION), may_be_interpreted ? bytecodes : 0);

	if (number < V8_MAX_FUNCTIONS)
		reading->frames[reading->note->n_frames++] = (struct v8_frame){fp, number};
	else
		reading->note->n_left++;
}

// Searches a stack for words that look like the frame of a JavaScript function. A function that has
// returned may have left some; v8_merge uses only those where the unwinder has found a frame.
static void search(struct reading *reading, const struct snapshot_region *region, uint64_t low)
{
	const uint64_t start =
	    low > region->start ? (low + WORD - 1) & ~(uint64_t)(WORD - 1) : region->start;
	const uint64_t skip = start - region->start;
	const size_t n = skip < region->size ? (region->size - skip) / WORD : 0;
	const uint64_t *words = (const uint64_t *)(region->bytes + skip);

	for (size_t i = N_BELOW; i + 1 < n; i++) {
		const uint64_t fp = start + i * WORD;
		if (++reading->n_words > MAX_WORDS || reading->note->n_frames == V8_MAX_FRAMES) {
			reading->note->n_left++;
			return;
		}
		if (!v8_is_object(words[i - CONTEXT]) || !v8_is_object(words[i - FUNCTION]) ||
		    words[i] - fp - WORD >= MAX_FRAME_BYTES || words[i] % WORD != 0)
			continue;
		if (region->gaps.count == 0 ||
		    !resident_has_gap(&region->gaps, skip + (i - N_BELOW) * WORD,
		                      (N_BELOW + 1) * WORD))
			add_frame(reading, &words[i], fp);
	}
}

// Searches the copied stacks, those at lower addresses first.
static void search_all(struct reading *reading, const struct snapshot *snapshot)
{
	const uint64_t sp = snapshot->registers.value[ARCH_NATIVE->sp];
	uint64_t done = 0;

	for (size_t i = 0; i < snapshot->n_regions; i++) {
		const struct snapshot_region *next = NULL;
		for (size_t j = 0; j < snapshot->n_regions; j++) {
			const struct snapshot_region *region = &snapshot->regions[j];
			if (region->start >= done && (!next || region->start < next->start))
				next = region;
		}
		if (!next || next->start % WORD != 0)
			return;
		// The innermost frame may end above these words.
		const bool has_sp = sp - next->start < next->size;
		search(reading, next, has_sp ? sp - N_BELOW * WORD : 0);
		done = next->start + 1;
	}
}

// Adds a block if the value points to an object.
static size_t add_block(struct resident_block *blocks, size_t n, uint64_t value, void *bytes,
                        size_t size)
{
	if (!v8_is_object(value))
		return n;
	blocks[n] = (struct resident_block){.address = value - 1, .bytes = bytes, .size = size};
	return n + 1;
}

static void read_blocks(struct reading *reading, size_t n)
{
	struct resident_block *blocks = reading->work->blocks;

	resident_read_blocks(reading->v8->setup->resident, reading->tid, blocks, n);
	for (size_t i = 0; i < n; i++)
		if (!blocks[i].is_read)
			memset(blocks[i].bytes, 0, blocks[i].size);
}

// Reads what identifies the functions: of all of them at once.
static void read_functions(struct reading *reading)
{
	const struct v8_layout *layout = reading->v8->layout;
	struct resident_block *blocks = reading->work->blocks;
	struct v8_noted *functions = reading->work->functions;
	const size_t n_functions = reading->note->n_functions;
	size_t n = 0;

	for (size_t i = 0; i < n_functions; i++) {
		struct v8_noted *noted = &functions[i];
		n = add_block(blocks, n, noted->function, noted->function_bytes,
		              sizeof(noted->function_bytes));
		n = add_block(blocks, n, noted->bytecodes, &noted->bytecodes_map,
		              sizeof(noted->bytecodes_map));
	}
	read_blocks(reading, n);
	n = 0;
	for (size_t i = 0; i < n_functions; i++)
		n = add_block(blocks, n,
		              v8_word_at(functions[i].function_bytes, layout->function_shared),
		              functions[i].shared_bytes, V8_SHARED_BYTES);
	read_blocks(reading, n);
	n = 0;
	for (size_t i = 0; i < n_functions; i++)
		n = add_block(blocks, n,
		              v8_word_at(functions[i].shared_bytes, layout->shared_script),
		              functions[i].script_bytes, V8_SCRIPT_BYTES);
	read_blocks(reading, n);
}

// Which pages are there is asked before the thread is held.
void v8_look_ahead(const void *context, int tid, void *note, size_t room)
{
	const struct v8 *v8 = context;
	struct resident_block blocks[V8_PAGES];
	size_t n = 0;

	(void)note;
	(void)room;
	for (size_t i = 0; i < V8_PAGES; i++)
		if (v8->pages[i])
			blocks[n++] = (struct resident_block){.address = v8->pages[i], .size = 1};
	resident_look_ahead(v8->setup->resident, tid, blocks, n);
}

size_t v8_read_note(const void *context, int tid, const struct snapshot *snapshot, void *bytes,
                    size_t room)
{
	struct v8_note *note = bytes;
	struct v8_frame *frames = (struct v8_frame *)(note + 1);
	struct work *work = (struct work *)(frames + V8_MAX_FRAMES);
	struct reading reading = {context, tid, note, frames, work, 0};

	if (room < sizeof(*note) + V8_MAX_FRAMES * sizeof(*frames) + sizeof(*work))
		return 0;
	*note = (struct v8_note){0};
	memset(work->slots, 0, sizeof(work->slots));
	search_all(&reading, snapshot);
	if (note->n_frames == 0)
		return 0;
	read_functions(&reading);
	memmove(frames + note->n_frames, work->functions,
	        note->n_functions * sizeof(work->functions[0]));
	return sizeof(*note) + note->n_frames * sizeof(*frames) +
	       note->n_functions * sizeof(work->functions[0]);
}

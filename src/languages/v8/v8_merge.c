// SPDX-License-Identifier: MIT
#include <string.h>

#include "address_space.h"
#include "frame_names.h"
#include "languages.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "run_stats.h"
#include "runtimes.h"
#include "snapshot.h"
#include "unwind.h"
#include "v8.h"

enum {
	ABOVE_FP = 16,    // the saved fp and the return address
	MAX_POPPED = 256, // of the arguments, by compiled functions
	PAGE_BYTES = 4096,
};

// Naming the frames of a stack.
struct merge {
	struct v8 *v8;
	struct v8_memory memory;
	const struct v8_note *note;
	const struct unwound *stack;
	uint32_t *locations; // of each noted function; NOT_ASKED, NO_NAME
	size_t n_unnamed, n_named;
};

enum { NOT_ASKED = UINT32_MAX, NO_NAME = UINT32_MAX - 1 };

// Finds the noted frame of the function whose part of the stack is from sp up to `end`. Only its
// arguments may lie between that frame and `end`: at most `max_popped` bytes, which the function
// removes when it returns. Noted frames further in were left by functions that have returned.
static const struct v8_frame *find_frame(const struct v8_note *note, uint64_t sp, uint64_t end,
                                         uint64_t max_popped)
{
	const struct v8_frame *frames = v8_note_frames(note);
	size_t low = 0, high = note->n_frames;

	while (low < high) { // those before `low` lie below `end`
		const size_t middle = low + (high - low) / 2;
		if (frames[middle].fp + ABOVE_FP <= end)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NULL;
	const struct v8_frame *frame = &frames[low - 1];
	return frame->fp >= sp && end - frame->fp - ABOVE_FP <= max_popped ? frame : NULL;
}

// True if the stack's i-th frame is code that V8 has compiled.
static bool is_compiled(const struct merge *merge, size_t i)
{
	const struct runtimes_setup *setup = merge->v8->setup;
	const struct location *location = &setup->profile->locations[merge->stack->locations[i]];

	return module_is_jit(setup->space->modules->items[location->module]);
}

// Only frames of interpreted functions have an array of bytecodes in that place.
static bool is_interpreted(const struct merge *merge, const struct v8_noted *noted)
{
	return noted->bytecodes &&
	       v8_map_type(&merge->memory, noted->bytecodes_map) == merge->v8->layout->bytecodes;
}

static uint32_t name_function(struct merge *merge, const struct v8_noted *noted)
{
	struct v8 *v8 = merge->v8;
	const struct v8_layout *layout = v8->layout;
	const int32_t type = v8_map_type(&merge->memory, v8_word_at(noted->function_bytes, 0));
	const struct v8_identity identity =
	    v8_identity_of(layout, v8_word_at(noted->function_bytes, layout->function_shared),
	                   noted->shared_bytes, noted->script_bytes);

	if (type < layout->first_function || type > layout->last_function)
		return NO_NAME;
	const struct v8_function *function =
	    v8_functions_get(&v8->functions, &merge->memory, &identity);
	return function ? profile_intern_location(
	                      v8->setup->profile, v8->names_module,
	                      frame_names_address(function->function, function->line))
	                : NO_NAME;
}

// Returns the location that the stack's i-th frame is shown as.
static uint32_t location_of(struct merge *merge, size_t i)
{
	const struct unwound *stack = merge->stack;
	const uint64_t end = i + 1 < stack->n ? stack->sps[i + 1] : stack->last_sp;
	const bool compiled = is_compiled(merge, i);
	const struct v8_frame *frame =
	    find_frame(merge->note, stack->sps[i], end, compiled ? MAX_POPPED : 0);
	const struct v8_noted *noted =
	    frame ? &v8_note_functions(merge->note)[frame->function] : NULL;

	if (!frame || (!compiled && !is_interpreted(merge, noted)))
		return stack->locations[i];
	uint32_t *location = &merge->locations[frame->function];
	if (*location == NOT_ASKED)
		*location = name_function(merge, noted);
	if (*location == NO_NAME) {
		merge->n_unnamed++;
		return stack->locations[i];
	}
	merge->n_named++;
	return *location;
}

static void remember_page(struct v8 *v8, uint64_t address)
{
	const uint64_t page = address / PAGE_BYTES;

	v8->pages[page * 0x9e3779b97f4a7c15u >> 32 & (V8_PAGES - 1)] = address;
}

// Notes in which pages the objects were, for v8_look_ahead.
static void remember_pages(struct merge *merge)
{
	const struct v8_layout *layout = merge->v8->layout;
	const struct v8_noted *functions = v8_note_functions(merge->note);

	memset(merge->v8->pages, 0, sizeof(merge->v8->pages));
	for (size_t i = 0; i < merge->note->n_functions; i++) {
		const struct v8_noted *noted = &functions[i];
		remember_page(merge->v8, noted->function);
		remember_page(merge->v8, noted->bytecodes);
		remember_page(merge->v8,
		              v8_word_at(noted->function_bytes, layout->function_shared));
		remember_page(merge->v8, v8_word_at(noted->shared_bytes, layout->shared_script));
	}
}

static size_t put_all(struct merge *merge)
{
	struct v8 *v8 = merge->v8;
	size_t n = 0;

	for (size_t i = 0; i < merge->stack->n; i++) {
		const size_t n_named = merge->n_named;
		const uint32_t location = location_of(merge, i);
		if (merge->n_named > n_named || v8->setup->frames != RUNTIME_FRAMES_OWN)
			*array_push(v8->locations, n, v8->locations_capacity) = location;
	}
	return n;
}

bool v8_merge(void *context, int tid, const struct snapshot *snapshot,
              const struct snapshot_note *bytes, struct unwound *stack)
{
	struct v8 *v8 = context;
	const struct v8_note *note = (const struct v8_note *)bytes->bytes;

	(void)snapshot;
	if (bytes->size == 0 || !stack->sps)
		return true;
	_cleanup_free_ uint32_t *locations = memory_alloc(note->n_functions * sizeof(*locations));
	for (size_t i = 0; i < note->n_functions; i++)
		locations[i] = NOT_ASKED;
	size_t n_left = V8_MAX_CHARACTERS;
	struct merge merge = {
	    .v8 = v8,
	    .memory = {.resident = v8->setup->resident,
	               .tid = tid,
	               .types = &v8->types,
	               .n_left = &n_left},
	    .note = note,
	    .stack = stack,
	    .locations = locations,
	};
	remember_pages(&merge);
	const size_t n = put_all(&merge);
	runtimes_figures(v8->setup, &v8_language)->unnamed += merge.n_unnamed + note->n_left;
	if (merge.n_named == 0)
		return true;
	stack->locations = v8->locations;
	stack->n = n;
	stack->sps = NULL;
	return true;
}

// SPDX-License-Identifier: MIT
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "frame_names.h"
#include "languages.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "python.h"
#include "runtimes.h"
#include "snapshot.h"
#include "unwind.h"

enum {
	MAX_LINKED = 1024,
	FIRST_WITH_JIT = 13, // 3.13
};

// --- Stacks with more calls than are shown

enum {
	// Of a stack that is deeper than is shown, so many of the outermost frames are: of few
	// frames, a part.
	MAX_OUTER = PYTHON_MAX_OUTER + 32,
	OUTER_SHARE = 16,
};

// Returns the location that stands for calls which are left out.
static uint32_t python_more_calls(const struct python *python)
{
	const uint32_t function = frame_names_add(python->codes.names, "[more calls]", "", 0);

	return profile_intern_location(python->setup->profile, python->names_module,
	                               frame_names_address(function, 0));
}

// Leaves at most n_max of the merged stack's locations (python->locations): of a whole stack the
// innermost and the outermost ones, and returns true if some were left out; else the innermost
// ones, and *stack tells that it is cut.
static bool python_cut(struct python *python, size_t n_max, struct unwound *stack)
{
	const size_t n = python->n_locations;
	const size_t n_outer = n_max / OUTER_SHARE < MAX_OUTER ? n_max / OUTER_SHARE : MAX_OUTER;

	if (n <= n_max)
		return false;
	python->n_locations = n_max;
	if (stack->end != STACK_COMPLETE || n_outer == 0) {
		stack->end = STACK_TOO_DEEP;
		return false;
	}
	const uint32_t mark = python_more_calls(python);
	uint32_t *from = &python->locations[n - n_outer], *outer;
	for (size_t i = 0; i < n_outer; i++)
		if (python->locations[n - n_outer + i] == mark)
			from = &python->locations[n - n_outer + i + 1]; // one mark is enough
	const size_t n_kept = (size_t)(&python->locations[n] - from);
	outer = &python->locations[n_max - n_outer];
	memmove(outer, from, n_kept * sizeof(*outer));
	outer[-1] = mark;
	python->n_locations = n_max - n_outer + n_kept;
	return true;
}

// --- Merging

// The Python frames of one call of the interpreter's loop, innermost first.
struct group {
	uint64_t anchor; // an address in the call's own frame on the stack; 0: none is known
	uint32_t first, n;
	uint64_t interp_id;
	bool is_cut; // there are more frames behind the last one
};

struct merge {
	struct python *python;
	int tid;
	const struct snapshot *snapshot;
	const struct python_note *note;
	struct unwound *stack;
	struct group *groups; // innermost first
	size_t n_groups;
	size_t n_max;    // locations
	bool is_partial; // some chain is cut
	bool has_unnamed;
	bool has_linked;   // 3.10: some frames are of no call of the loop
	uint32_t n_linked; // frames that were asked about
};

static void put(struct merge *merge, uint32_t location)
{
	struct python *python = merge->python;

	*array_push(python->locations, python->n_locations, python->locations_capacity) = location;
}

static enum python_native native_at(const struct merge *merge, size_t i)
{
	return python_natives_get(&merge->python->natives, merge->python->setup->profile,
	                          merge->stack->locations[i]);
}

static bool is_loop_at(const struct merge *merge, size_t i)
{
	const enum python_native native = native_at(merge, i);

	return native == PYTHON_NATIVE_EVAL || native == PYTHON_NATIVE_EVAL_JIT;
}

// True if the stack's i-th frame is a part of the loop's call that is the next one.
static bool is_inner_loop(const struct merge *merge, size_t i)
{
	return is_loop_at(merge, i) && i + 1 < merge->stack->n && is_loop_at(merge, i + 1);
}

static bool ends_group(const struct python_layout *layout, const struct python_frame *frame)
{
	if (layout->minor <= 10)
		return true;
	return layout->minor == 11 ? frame->is_entry : frame->is_shim;
}

// From 3.14 on the outermost shim is in the thread's state, and not on the stack.
static bool is_base(const struct python_layout *layout, const struct group *group,
                    const struct python_frame *frames)
{
	return layout->minor >= 14 && group->n == 1 && frames[group->first].is_shim;
}

// An exception that is thrown into a generator is handed to the one that it waits for, and so on,
// without calls of the loop. From 3.9 on, their frames are linked in nevertheless while that one
// handles it: to the call which has thrown it, which is further out (_gen_throw in genobject.c).
static bool may_be_linked(struct merge *merge, const struct python_frame *frame)
{
	return frame->is_generator && merge->n_linked++ < MAX_LINKED;
}

// 3.11: each C structure says which frame is its call's innermost one. One that says another is a
// call that has no frame yet, or is not a call of the loop. The innermost one that is linked is
// told as that of the call which threw; further ones, and that call's own, are told by none.
static void anchor_by_frames(struct merge *merge, const struct python_chain *chain, size_t first)
{
	const struct python_frame *frames = python_note_frames(merge->note);
	const struct python_cframe *cframes =
	    python_note_cframes(merge->note) + chain->first_cframe;
	size_t next = 0;

	for (size_t i = first; i < merge->n_groups; i++) {
		struct group *group = &merge->groups[i];
		size_t at = next;
		while (at < chain->n_cframes && cframes[at].frame != frames[group->first].address)
			at++;
		if (at < chain->n_cframes) {
			group->anchor = cframes[at].address;
			next = at + 1;
		} else if (i > first && may_be_linked(merge, &frames[group->first - 1])) {
			group->anchor = group[-1].anchor;
		} else {
			next = chain->n_cframes;
		}
	}
}

// True unless the address is in the frame of a function that is not the interpreter's.
static bool is_in_interpreter(struct merge *merge, uint64_t address)
{
	const struct unwound *stack = merge->stack;

	for (size_t i = 0; i < stack->n; i++) {
		const uint64_t high = i + 1 < stack->n ? stack->sps[i + 1] : stack->last_sp;
		if (address < stack->sps[i] || address >= high)
			continue;
		const enum python_native native = python_natives_get(
		    &merge->python->natives, merge->python->setup->profile, stack->locations[i]);
		return native != PYTHON_NATIVE_OTHER && native != PYTHON_NATIVE_GREENLETS;
	}
	return true;
}

// 3.10: by the C structures of calls of the loop, counted from the outermost. One more of them is a
// call that has no frame yet; one less is a call that is over, whose frame has not been taken off
// yet.
static void anchor_by_count(struct merge *merge, const struct python_chain *chain, size_t first)
{
	const struct python_cframe *cframes =
	    python_note_cframes(merge->note) + chain->first_cframe;
	size_t group = merge->n_groups;

	for (size_t i = chain->n_cframes; i > 0 && group > first; i--)
		if (is_in_interpreter(merge, cframes[i - 1].address))
			merge->groups[--group].anchor = cframes[i - 1].address;
	if (group == first)
		return;
	memmove(&merge->groups[first], &merge->groups[group],
	        (merge->n_groups - group) * sizeof(merge->groups[0]));
	merge->n_groups -= group - first;
}

// True if there are more frames than calls, and these may be linked ones: counting tells nothing.
static bool has_linked(struct merge *merge, const struct python_chain *chain, size_t first)
{
	const struct python_frame *frames = python_note_frames(merge->note);
	const struct python_cframe *cframes =
	    python_note_cframes(merge->note) + chain->first_cframe;
	size_t n_calls = 0, n_generators = 0;

	for (size_t i = 0; i < chain->n_cframes; i++)
		n_calls += is_in_interpreter(merge, cframes[i].address);
	for (size_t i = first; i < merge->n_groups; i++)
		n_generators += frames[merge->groups[i].first].is_generator;
	return merge->n_groups - first > n_calls && n_generators > 0 && merge->note->n_chains == 1;
}

// Returns the outermost call of the loop; 0: there is none.
static uint64_t find_last_loop(const struct merge *merge)
{
	size_t i = merge->stack->n;

	while (i > 0 && !is_loop_at(merge, i - 1))
		i--;
	return i > 0 ? merge->stack->sps[i - 1] : 0;
}

static void split_chain(struct merge *merge, const struct python_chain *chain)
{
	const struct python_layout *layout = &merge->python->layout;
	const struct python_frame *frames = python_note_frames(merge->note);
	const uint32_t end = chain->first_frame + chain->n_frames;
	const size_t first_group = merge->n_groups;

	merge->is_partial |= chain->is_cut;
	for (uint32_t i = chain->first_frame, first = i; i < end; i++) {
		if (!ends_group(layout, &frames[i]) && i + 1 < end)
			continue;
		merge->groups[merge->n_groups++] =
		    (struct group){frames[i].is_shim ? frames[i].address : 0, first, i + 1 - first,
		                   chain->interp_id, false};
		first = i + 1;
	}
	if (merge->n_groups > first_group && chain->is_cut)
		merge->groups[merge->n_groups - 1].is_cut = true;
	else if (merge->n_groups > first_group &&
	         is_base(layout, &merge->groups[merge->n_groups - 1], frames))
		merge->n_groups--;
	if (layout->minor == 10 && (chain->is_cut || has_linked(merge, chain, first_group)))
		merge->has_linked = true;
	else if (layout->minor == 10)
		anchor_by_count(merge, chain, first_group);
	if (layout->minor == 11)
		anchor_by_frames(merge, chain, first_group);
	if (chain->n_outer > 0)
		merge->groups[merge->n_groups++] = (struct group){
		    .anchor = find_last_loop(merge),
		    .first = end,
		    .n = chain->n_outer,
		    .interp_id = chain->interp_id,
		};
}

// Up to 3.9 no structure of the loop's is on the stack, but its frame, or that of what it calls,
// has the address of the Python frame in some word.
static bool has_word(const struct snapshot *snapshot, uint64_t low, uint64_t high, uint64_t wanted)
{
	enum { BELOW = 64, MAX_FRAME = 8192 };
	uint64_t word;

	if (high < low || high - low > MAX_FRAME)
		return false;
	for (uint64_t at = low - BELOW; at < high; at += sizeof(word))
		if (snapshot_read_word(snapshot, at, &word) && word == wanted)
			return true;
	return false;
}

static bool is_made_code(const struct merge *merge, size_t i)
{
	const struct python *python = merge->python;
	const uint32_t location = merge->stack->locations[i];

	return module_is_jit(
	    python->natives.modules->items[python->setup->profile->locations[location].module]);
}

// Finds the group of the call of the loop that is the stack's i-th frame. Each chain's groups are
// found one after the other, as a call has words of its callers' in its frame, too; before the
// call's own there may be linked ones. What a thread's newest state calls is within what others
// call.
static void anchor_call(struct merge *merge, size_t i, uint32_t *n_found)
{
	const struct python_note *note = merge->note;
	const struct python_frame *frames = python_note_frames(note);
	const struct unwound *stack = merge->stack;
	const uint64_t high = i + 1 < stack->n ? stack->sps[i + 1] : stack->last_sp;
	size_t low = i; // parts of the loop's, and code that it has made, have the word, too

	while (low > 0 && (is_made_code(merge, low - 1) || is_inner_loop(merge, low - 1)))
		low--;
	for (size_t c = note->n_chains; c-- > 0;) {
		const struct python_chain *chain = &note->chains[c];
		struct group *groups = &merge->groups[chain->first_frame];
		uint32_t last = n_found[c];
		while (last < chain->n_frames && !has_word(merge->snapshot, stack->sps[low], high,
		                                           frames[groups[last].first].address))
			last = may_be_linked(merge, &frames[groups[last].first]) ? last + 1
			                                                         : chain->n_frames;
		if (last >= chain->n_frames)
			continue;
		while (n_found[c] <= last)
			groups[n_found[c]++].anchor = stack->sps[i];
		return;
	}
}

// 3.9 links in the innermost one alone, and knows of none further out: nobody's call is left for
// it.
static void anchor_outermost(struct merge *merge, const struct python_chain *chain,
                             uint32_t n_found)
{
	const struct python_frame *frames = python_note_frames(merge->note);
	struct group *outermost = &merge->groups[chain->first_frame + chain->n_frames - 1];

	if (n_found > 0 && n_found + 1 == chain->n_frames &&
	    may_be_linked(merge, &frames[outermost->first]))
		outermost->anchor = outermost[-1].anchor;
}

// Up to 3.10, where each frame is a group. Those without a call come last.
static void anchor_by_words(struct merge *merge)
{
	const struct unwound *stack = merge->stack;
	uint32_t n_found[PYTHON_MAX_CHAINS] = {0}; // groups of each chain

	for (size_t i = 0; i < merge->n_groups; i++)
		merge->groups[i].anchor = UINT64_MAX;
	for (size_t i = 0; i < stack->n; i++)
		if (is_loop_at(merge, i) && !is_inner_loop(merge, i))
			anchor_call(merge, i, n_found);
	for (size_t c = 0; c < merge->note->n_chains; c++)
		anchor_outermost(merge, &merge->note->chains[c], n_found[c]);
}

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->anchor == y->anchor)
		return (x->first > y->first) - (x->first < y->first);
	return x->anchor < y->anchor ? -1 : 1;
}

static const struct python_code *code_of(struct merge *merge, const struct python_frame *frame)
{
	if (frame->code_index >= merge->note->n_codes)
		return NULL;
	return python_codes_get(merge->python, merge->tid,
	                        &python_note_codes(merge->note)[frame->code_index]);
}

static void put_frame(struct merge *merge, const struct python_frame *frame)
{
	struct python *python = merge->python;
	struct profile *profile = python->setup->profile;
	const struct python_code *code = frame->is_shim ? NULL : code_of(merge, frame);
	uint64_t address = frame_names_address(FRAME_NAMES_NONE, 0);

	if (frame->is_shim)
		return;
	if (code) {
		int64_t at = 0;
		const bool is_found = python_codes_find_place(python, merge->tid, frame, code, &at);
		// A function that has not begun yet, as sys._getframe() hides it, or a piece of the
		// interpreter's own code.
		if (python->layout.code_traceable && !frame->is_generator && is_found &&
		    at < code->traceable && frame->line == 0)
			return;
		if (python->layout.minor >= 12 && code->lines_bytes == 0)
			return;
		const uint32_t line = is_found && frame->line == 0
		                          ? python_codes_line(python, code, at)
		                          : frame->line;
		address = frame_names_address(code->function, line);
	}
	merge->has_unnamed |= !code;
	put(merge, profile_intern_location(profile, python->names_module, address));
}

static void put_group(struct merge *merge, const struct group *group)
{
	const struct python_frame *frames = python_note_frames(merge->note);

	for (uint32_t i = 0; i < group->n; i++)
		put_frame(merge, &frames[group->first + i]);
	if (!group->is_cut || merge->stack->end != STACK_COMPLETE)
		return;
	put(merge, python_more_calls(merge->python));
}

static bool is_called_by(const struct merge *merge, const struct group *group, size_t i)
{
	const struct unwound *stack = merge->stack;
	const uint64_t high = i + 1 < stack->n ? stack->sps[i + 1] : stack->last_sp;

	return group->anchor >= stack->sps[i] && group->anchor < high;
}

// True if the group belongs to the loop's call that is the stack's i-th frame. Where a chain is
// cut, a group may have lost what tells its call: it belongs to the next one.
static bool belongs_to(const struct merge *merge, const struct group *group, size_t i,
                       bool has_group)
{
	if (merge->is_partial && group->anchor == 0)
		return !has_group && is_loop_at(merge, i);
	return is_called_by(merge, group, i);
}

// True if the stack's i-th frame is code that the interpreter has made: the loop's own, by its JIT,
// or what leads to the loop, with a name for each function (python -X perf). `next` is the next
// group that is to be placed: what it belongs to is a loop, too (a part of it that has no name).
static bool is_loops_code(const struct merge *merge, size_t i, size_t next)
{
	const struct unwound *stack = merge->stack;

	if (!is_made_code(merge, i))
		return false;
	while (i < stack->n && is_made_code(merge, i))
		i++;
	if (i < stack->n && next < merge->n_groups &&
	    merge->python->layout.minor >= FIRST_WITH_JIT &&
	    is_called_by(merge, &merge->groups[next], i))
		return true;
	return i < stack->n &&
	       (native_at(merge, i) == PYTHON_NATIVE_MAKES_CODE ||
	        native_at(merge, i) == PYTHON_NATIVE_EVAL_JIT ||
	        (merge->python->layout.minor >= FIRST_WITH_JIT && is_loop_at(merge, i)));
}

static bool is_shown(struct merge *merge, size_t i, size_t next, bool is_loop)
{
	const enum runtime_frames frames = merge->python->setup->frames;

	if (frames != RUNTIME_FRAMES_AUTO)
		return frames == RUNTIME_FRAMES_ALL;
	if (is_loop || is_inner_loop(merge, i) || is_loops_code(merge, i, next))
		return false;
	const enum python_native native = native_at(merge, i);
	return native != PYTHON_NATIVE_PLUMBING && native != PYTHON_NATIVE_MAKES_CODE;
}

// True if the stack's i-th frame is where a greenlet begins that has no function's name to tell it
// by: the library's code that called the outermost of the Python frames.
static bool begins_greenlet(struct merge *merge, size_t i)
{
	return native_at(merge, i) == PYTHON_NATIVE_GREENLETS;
}

// False: a group has no place.
static bool place(struct merge *merge)
{
	const struct unwound *stack = merge->stack;
	size_t next = 0;

	for (size_t i = 0; i < stack->n; i++) {
		bool is_loop = false;
		while (next < merge->n_groups &&
		       belongs_to(merge, &merge->groups[next], i, is_loop)) {
			put_group(merge, &merge->groups[next++]);
			is_loop = true;
		}
		is_loop |= merge->is_partial && is_loop_at(merge, i);
		if (is_shown(merge, i, next, is_loop))
			put(merge, stack->locations[i]);
		if (next == merge->n_groups && begins_greenlet(merge, i)) {
			merge->stack->end = STACK_COMPLETE;
			break;
		}
	}
	// What is above the part of the stack that could be unwound.
	for (; next < merge->n_groups && stack->end != STACK_COMPLETE; next++)
		put_group(merge, &merge->groups[next]);
	return next == merge->n_groups;
}

static void count_fault(struct python *python, enum runtime_fault fault)
{
	runtimes_figures(python->setup, &python_language)->faults[fault]++;
}

// What was read of the thread, for its next sample.
static void remember(struct merge *merge)
{
	const struct python_note *note = merge->note;
	const size_t bytes = note->n_asked * sizeof(struct python_piece);
	size_t n_states;
	struct python_thread *thread = (struct python_thread *)python_threads_find(
	    merge->python->threads, merge->tid, &n_states);

	if (n_states == 0) { // it is new
		merge->python->wants_threads = true;
		return;
	}
	_cleanup_free_ struct python_piece *asked = memory_alloc(bytes + 1);
	memcpy(asked, python_note_asked(note), bytes);
	struct python_plan *old = thread->plan;
	struct python_plan *plan = python_plan_make(old, asked, note->n_asked);
	if (plan == old)
		return;
	thread->plan = plan; // a signal handler sees the one or the other
	free(old);
}

static bool shows_loop(struct merge *merge)
{
	return find_last_loop(merge) != 0;
}

static void count_no_place(struct merge *merge)
{
	const bool is_known = shows_loop(merge) || merge->stack->end != STACK_COMPLETE;

	count_fault(merge->python, is_known ? RUNTIME_FAULT_NO_PLACE : RUNTIME_FAULT_NO_LOOP);
}

// The stack of a greenlet ends where that began.
static void end_at_greenlet(struct python *python, struct unwound *stack)
{
	for (size_t i = 0; i < stack->n; i++) {
		if (python_natives_get(&python->natives, python->setup->profile,
		                       stack->locations[i]) != PYTHON_NATIVE_GREENLET)
			continue;
		stack->last_sp = i + 1 < stack->n ? stack->sps[i + 1] : stack->last_sp;
		stack->n = i + 1;
		stack->end = STACK_COMPLETE;
	}
}

// Of a thread without a state: whether more will be known of it after an update.
static bool merge_stateless(struct merge *merge)
{
	struct python *python = merge->python;
	const bool is_other = !shows_loop(merge); // not a new thread, but none of Python's

	python_threads_note_other(python, merge->tid, is_other);
	if (is_other)
		return true;
	python->wants_threads = true;
	count_fault(python, RUNTIME_FAULT_NO_STATE);
	return false;
}

// Of a thread that was stopped before the interpreter was found, or told its version.
static bool merge_unread(struct merge *merge)
{
	const bool is_lost = shows_loop(merge);

	if (is_lost)
		count_fault(merge->python, merge->python->is_early ? RUNTIME_FAULT_EARLY
		                                                   : RUNTIME_FAULT_UNREADABLE);
	return !is_lost;
}

// Finds the groups, in the order in which they are called, and where each is on the stack.
static void find_groups(struct merge *merge)
{
	const struct python_note *note = merge->note;

	for (uint32_t i = 0; i < note->n_chains; i++)
		split_chain(merge, &note->chains[i]);
	if (merge->n_groups == 0)
		return;
	if (merge->python->layout.minor <= 9 || merge->has_linked)
		anchor_by_words(merge);
	if (note->n_chains > 1 && !merge->is_partial)
		qsort(merge->groups, merge->n_groups, sizeof(merge->groups[0]), compare_groups);
}

// Puts the groups in their places. If one has none, the machine's frames stay.
static void put_all(struct merge *merge)
{
	struct python *python = merge->python;
	struct unwound *stack = merge->stack;

	python->n_locations = 0;
	if (!place(merge)) {
		count_no_place(merge);
		return;
	}
	merge->is_partial |= python_cut(python, merge->n_max, stack);
	if (merge->has_unnamed)
		count_fault(python, RUNTIME_FAULT_UNNAMED);
	if (merge->is_partial)
		count_fault(python, RUNTIME_FAULT_TOO_DEEP);
	stack->locations = python->locations;
	stack->n = python->n_locations;
	stack->sps = NULL;
}

bool python_merge(void *context, int tid, const struct snapshot *snapshot,
                  const struct snapshot_note *bytes, struct unwound *stack)
{
	struct python *python = context;
	struct merge merge = {
	    .python = python,
	    .tid = tid,
	    .snapshot = snapshot,
	    .note = (const struct python_note *)bytes->bytes,
	    .stack = stack,
	    .n_max = python->setup->max_frames,
	};
	const struct python_note *note = merge.note;
	const bool waits = python->gil_waiter == tid;

	if (python->is_early || bytes->size == 0)
		return merge_unread(&merge);

	python->gil_waiter = 0;
	end_at_greenlet(python, stack);
	stack->labels = python_labels(python, note, stack, note->chains[0].interp_id, waits);
	python->wants_threads |= note->has_others;
	if (!note->has_state)
		return merge_stateless(&merge);
	remember(&merge);
	if (note->fault != RUNTIME_FAULT_NONE) {
		count_fault(python, note->fault);
		return true;
	}
	// As many as frames, and one more for each chain that is cut.
	_cleanup_free_ struct group *groups =
	    memory_alloc((note->n_frames + PYTHON_MAX_CHAINS) * sizeof(*groups));
	merge.groups = groups;
	find_groups(&merge);
	if (merge.n_groups == 0) {
		// A call has no frame yet; or (3.10) the frames have no call.
		if (shows_loop(&merge) || (python->layout.minor == 10 && note->n_frames > 0))
			count_no_place(&merge);
		return true;
	}
	if (groups[0].interp_id != note->chains[0].interp_id)
		stack->labels = python_labels(python, note, stack, groups[0].interp_id, waits);
	put_all(&merge);
	return true;
}

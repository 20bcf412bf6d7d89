// SPDX-License-Identifier: MIT
#include "top_tree.h"

#include <stdlib.h>

#include "blocked_leaf.h"
#include "frame_name.h"
#include "memory.h"
#include "module.h"
#include "symbolize.h"
#include "top_model.h"
#include "top_own.h"
#include "top_waits.h"

// Functions have their position in the symbols; after them come locations without a name, then
// reasons why a stack ends.
static uint32_t id_of_location(const struct top_input *input, uint32_t location)
{
	return (uint32_t)input->symbols->n_functions + location;
}

static uint32_t id_of_end(const struct top_input *input, enum stack_end end)
{
	return (uint32_t)(input->symbols->n_functions + input->profile->n_locations) + end;
}

// The functions at one location, innermost first. Returns how many: 1 to `room`.
static size_t frames_at(const struct top_input *input, uint32_t location, uint32_t *ret_ids,
                        uint32_t *ret_lines, size_t room)
{
	const struct symbols *symbols = input->symbols;
	const struct location_lines *lines =
	    location < symbols->n_locations ? &symbols->locations[location] : NULL;

	if (!lines || lines->count == 0) {
		ret_ids[0] = id_of_location(input, location);
		ret_lines[0] = 0;
		return 1;
	}
	size_t n = 0;
	for (uint32_t i = 0; i < lines->count && n < room; i++) {
		const struct line *line = &symbols->lines[lines->first + i];
		ret_lines[n] = line->line;
		ret_ids[n++] = line->function;
	}
	return n;
}

size_t top_frames(const struct top_input *input, uint32_t sample, uint32_t *ret_ids,
                  uint32_t *ret_lines)
{
	const struct profile *profile = input->profile;
	struct stack stack = profile->stacks[profile->samples[sample].stack];
	// With --blame, a table tells of the thread that waits; HELD BY is who makes it wait.
	const uint32_t n_inner =
	    stack.n_blamed
	        ?: blocked_leaf_inner_frames(profile, input->modules, input->symbols,
	                                     &profile->samples[sample]);
	size_t n = 0;

	stack.first += n_inner;
	stack.n_frames -= n_inner;
	for (uint32_t i = 0; i < stack.n_frames && n < TOP_MAX_FRAMES - 1; i++)
		n += frames_at(input, profile->location_ids[stack.first + i], ret_ids + n,
		               ret_lines + n, TOP_MAX_FRAMES - 1 - n);
	const enum stack_end end = frame_name_stack_end(&stack);
	if (end == STACK_COMPLETE && n > 0)
		return n;
	ret_lines[n] = 0;
	ret_ids[n++] = id_of_end(input, end);
	return n;
}

// The root of stacks without the program's own functions.
static uint32_t id_of_elsewhere(const struct top_input *input)
{
	return id_of_end(input, (enum stack_end)N_STACK_ENDS);
}

bool top_is_elsewhere(const struct top_input *input, uint32_t id)
{
	return id == id_of_elsewhere(input);
}

static int compare(const void *a_pointer, const void *b_pointer)
{
	const struct top_function *a = a_pointer, *b = b_pointer;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->total.count != b->total.count)
		return a->total.count > b->total.count ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

void top_find_functions(struct top_model *model, const struct sample *sums, size_t n)
{
	const struct top_input *input = &model->input;
	const struct profile *profile = input->profile;
	const size_t n_ids = input->symbols->n_functions + profile->n_locations + N_STACK_ENDS;
	struct top_function *functions = memory_alloc_zeroed(n_ids, sizeof(*functions));
	_cleanup_free_ size_t *seen = memory_alloc_zeroed(n_ids, sizeof(*seen)); // sample + 1
	uint32_t ids[TOP_MAX_FRAMES], lines[TOP_MAX_FRAMES];

	for (size_t s = 0; s < n; s++) {
		if (!top_counts(model, sums, s))
			continue;
		const size_t n_frames = top_frames(input, (uint32_t)s, ids, lines);
		const size_t own = top_own_frame(input, ids, n_frames);
		functions[ids[0]].self += sums[s].count;
		functions[ids[own < n_frames ? own : 0]].own_self += sums[s].count;
		if (own == n_frames)
			top_add_share(&model->elsewhere, model, s, sums[s].count);
		for (size_t i = 0; i < n_frames; i++) {
			struct top_share *total = &functions[ids[i]].total;
			if (seen[ids[i]] == s + 1)
				continue; // recursion
			seen[ids[i]] = s + 1;
			top_add_share(total, model, s, sums[s].count);
		}
	}
	for (size_t i = 0; i < n_ids; i++) {
		functions[i].id = (uint32_t)i;
		if (functions[i].total.count > 0)
			functions[model->n_functions++] = functions[i];
	}
	qsort(functions, model->n_functions, sizeof(*functions), compare);
	model->functions = functions;
}

// The child of that function, new or known; TOP_NONE: there is no room for one more.
static uint32_t child_of(struct top_model *model, uint32_t parent, uint32_t id)
{
	uint32_t node = model->nodes[parent].first_child;

	while (node != TOP_NONE && model->nodes[node].id != id)
		node = model->nodes[node].next_sibling;
	if (node != TOP_NONE || model->n_nodes >= TOP_MAX_NODES)
		return node;
	node = (uint32_t)model->n_nodes;
	*array_push(model->nodes, model->n_nodes, model->nodes_capacity) = (struct top_node){
	    .id = id,
	    .parent = parent,
	    .first_child = TOP_NONE,
	    .next_sibling = model->nodes[parent].first_child,
	};
	model->nodes[parent].first_child = node;
	return node;
}

static void add_path(struct top_model *model, const uint32_t *ids, size_t n, uint64_t count)
{
	uint32_t node = 0;

	model->nodes[0].total += count;
	while (n-- > 0) {
		const uint32_t child = child_of(model, node, ids[n]);
		if (child == TOP_NONE)
			break; // the rest counts as its own
		node = child;
		model->nodes[node].total += count;
	}
	model->nodes[node].self += count;
}

void top_find_tree(struct top_model *model, const struct sample *sums, size_t n)
{
	const struct top_input *input = &model->input;
	uint32_t ids[TOP_MAX_FRAMES + 1], lines[TOP_MAX_FRAMES + 1];
	const bool folds = !input->choice.shows_all;
	const bool has_own = model->elsewhere.count < model->n_counted;

	*array_push(model->nodes, model->n_nodes, model->nodes_capacity) = (struct top_node){
	    .id = TOP_NONE, .parent = TOP_NONE, .first_child = TOP_NONE, .next_sibling = TOP_NONE};
	for (size_t s = 0; s < n; s++) {
		if (!top_counts(model, sums, s))
			continue;
		size_t n_frames = top_frames(input, (uint32_t)s, ids, lines);
		if (folds)
			n_frames = top_fold(input, ids, lines, n_frames);
		if (folds && has_own && top_own_frame(input, ids, n_frames) == n_frames)
			ids[n_frames++] = id_of_elsewhere(input);
		add_path(model, ids, n_frames, sums[s].count);
	}
}

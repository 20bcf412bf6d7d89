// SPDX-License-Identifier: MIT
#include "top_tree.h"

#include <stdlib.h>

#include "blocked_leaf.h"
#include "frame_name.h"
#include "memory.h"
#include "module.h"
#include "own_code.h"
#include "symbolize.h"
#include "top_model.h"

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

size_t top_frames_at(const struct top_input *input, uint32_t location, uint32_t ret[TOP_MAX_FRAMES])
{
	const struct symbols *symbols = input->symbols;
	const struct location_lines *lines =
	    location < symbols->n_locations ? &symbols->locations[location] : NULL;

	if (!lines || lines->count == 0) {
		ret[0] = id_of_location(input, location);
		return 1;
	}
	size_t n = 0;
	for (uint32_t i = 0; i < lines->count && n < TOP_MAX_FRAMES; i++)
		ret[n++] = symbols->lines[lines->first + i].function;
	return n;
}

struct stack top_stack_of(const struct top_input *input, uint32_t sample)
{
	const struct profile *profile = input->profile;
	struct stack stack = profile->stacks[profile->samples[sample].stack];
	const uint32_t n = blocked_leaf_inner_frames(profile, input->modules, input->symbols,
	                                             &profile->samples[sample]);

	stack.first += n;
	stack.n_frames -= n;
	return stack;
}

size_t top_frames(const struct top_input *input, const struct stack *stack,
                  uint32_t ret[TOP_MAX_FRAMES])
{
	uint32_t here[TOP_MAX_FRAMES];
	size_t n = 0;

	for (uint32_t i = 0; i < stack->n_frames && n < TOP_MAX_FRAMES - 1; i++) {
		const size_t n_here =
		    top_frames_at(input, input->profile->location_ids[stack->first + i], here);
		for (size_t j = 0; j < n_here && n < TOP_MAX_FRAMES - 1; j++)
			ret[n++] = here[j];
	}
	const enum stack_end end = frame_name_stack_end(stack);
	if (end != STACK_COMPLETE || n == 0)
		ret[n++] = id_of_end(input, end);
	return n;
}

// Returns the position of the innermost own function at one location; SIZE_MAX: none is.
static size_t own_line(const struct top_input *input, uint32_t location)
{
	const struct module *module =
	    input->modules->items[input->profile->locations[location].module];
	const struct symbols *symbols = input->symbols;
	uint32_t ids[TOP_MAX_FRAMES];
	const size_t n = top_frames_at(input, location, ids);

	for (size_t i = 0; i < n; i++)
		if (own_code_function(
		        module, ids[i] < symbols->n_functions ? &symbols->functions[ids[i]] : NULL))
			return i;
	return SIZE_MAX;
}

size_t top_own_frame(const struct top_input *input, const struct stack *stack)
{
	uint32_t ids[TOP_MAX_FRAMES];
	size_t n = 0;

	for (uint32_t i = 0; i < stack->n_frames && n < TOP_MAX_FRAMES; i++) {
		const uint32_t location = input->profile->location_ids[stack->first + i];
		const size_t own = own_line(input, location);
		if (own != SIZE_MAX)
			return n + own;
		n += top_frames_at(input, location, ids);
	}
	return SIZE_MAX;
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
	uint32_t ids[TOP_MAX_FRAMES];

	for (size_t s = 0; s < n; s++) {
		if (sums[s].count == 0)
			continue;
		const struct stack stack = top_stack_of(input, (uint32_t)s);
		const size_t n_frames = top_frames(input, &stack, ids);
		functions[ids[0]].self += sums[s].count;
		for (size_t i = 0; i < n_frames; i++) {
			struct top_share *total = &functions[ids[i]].total;
			if (seen[ids[i]] == s + 1)
				continue; // recursion
			seen[ids[i]] = s + 1;
			total->count += sums[s].count;
			total->kinds[model->kinds[s]] += sums[s].count;
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
	uint32_t ids[TOP_MAX_FRAMES];

	*array_push(model->nodes, model->n_nodes, model->nodes_capacity) = (struct top_node){
	    .id = TOP_NONE, .parent = TOP_NONE, .first_child = TOP_NONE, .next_sibling = TOP_NONE};
	for (size_t s = 0; s < n; s++) {
		if (sums[s].count == 0)
			continue;
		const struct stack stack = top_stack_of(&model->input, (uint32_t)s);
		const size_t n_frames = top_frames(&model->input, &stack, ids);
		add_path(model, ids, n_frames, sums[s].count);
	}
}

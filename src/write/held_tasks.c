// SPDX-License-Identifier: MIT
#include "held_tasks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "hash.h"
#include "memory.h"
#include "profile.h"
#include "symbolize.h"
#include "wait_kind.h"
#include "writer.h"

enum {
	// Of one thread's time: less in the same function means that all could go on with it.
	LEAST_OTHERS_PERCENT = 90,
	LEAST_ELSEWHERE_TICKS = 3, // fewer may be how a thread began
};

// An own function of the program's, called by certain others.
struct call {
	uint32_t parent;   // a call; 0: a thread's first own function
	uint32_t function; // of the symbols
	double ns;         // in it, and in what it calls
};

// The first call is none: threads that are in no own function.
struct call_tree {
	struct call *calls;
	size_t n, capacity;
	struct hash_index index;
};

static bool call_equal(const void *context, uint32_t id, const void *key)
{
	const struct call *a = &((const struct call *)context)[id], *b = key;

	return a->parent == b->parent && a->function == b->function;
}

static uint32_t intern(struct call_tree *tree, uint32_t parent, uint32_t function)
{
	const struct call call = {.parent = parent, .function = function};
	const uint64_t hash = hash_mix(parent, function);
	uint32_t id = hash_index_find(&tree->index, hash, call_equal, tree->calls, &call);

	if (id != HASH_NONE)
		return id;
	id = (uint32_t)tree->n;
	*array_push(tree->calls, tree->n, tree->capacity) = call;
	hash_index_insert(&tree->index, hash, id);
	return id;
}

// Adds the sample's time to its functions. Returns the innermost one, 0: there is none.
static uint32_t add(struct call_tree *tree, struct explanation *explanation,
                    const struct sample *sample)
{
	const struct profile *profile = explanation->report->profile;
	uint32_t n, id = 0;
	const struct place *places =
	    explain_own_places(explanation, &profile->stacks[sample->stack], &n);

	for (uint32_t i = 0; i < n; i++) {
		id = intern(tree, id, places[i].function);
		tree->calls[id].ns += (double)sample->wall_ns;
	}
	return id;
}

// True if one of the functions around that one is a task: others are in it at the time of waiting,
// and what calls it does something else as well.
static bool is_in_task(const struct call_tree *tree, uint32_t id, const struct profile *profile)
{
	const struct call *calls = tree->calls;
	const double others_ns = LEAST_OTHERS_PERCENT * (double)profile->duration_ns / 100;
	const double elsewhere_ns = LEAST_ELSEWHERE_TICKS * (double)profile->period_ns;
	uint32_t first = id;

	while (calls[first].parent)
		first = calls[first].parent;
	for (uint32_t task = calls[id].parent; task; task = calls[task].parent)
		if (calls[task].ns - calls[id].ns >= others_ns &&
		    calls[first].ns - calls[task].ns >= elsewhere_ns)
			return true;
	return false;
}

// True if the function's name says that it waits for a place.
static bool is_named_pool(const struct explanation *explanation, const struct call *call)
{
	static const char *const names[] = {"checkout", "check_out", "acquire", "borrow"};

	for (size_t i = 0; i < array_size(names); i++)
		if (strcasestr(explain_function(explanation, call->function)->name, names[i]))
			return true;
	return false;
}

void held_tasks_find(struct explanation *explanation, uint8_t *rules)
{
	const struct profile *profile = explanation->report->profile;
	_cleanup_free_ uint32_t *ids = memory_alloc_zeroed(profile->n_samples + 1, sizeof(*ids));
	struct call_tree tree = {0};

	*array_push(tree.calls, tree.n, tree.capacity) = (struct call){0};
	for (size_t i = 0; i < profile->n_samples; i++)
		if (explain_is_selected(explanation, i))
			ids[i] = add(&tree, explanation, &profile->samples[i]);
	for (size_t i = 0; i < profile->n_samples; i++)
		if (ids[i] && rules[i] == RULE_IDLE &&
		    sample_kind(&explanation->kinds, &profile->samples[i]) == WAIT_KIND_CONDITION &&
		    (is_in_task(&tree, ids[i], profile) ||
		     is_named_pool(explanation, &tree.calls[ids[i]])))
			rules[i] = RULE_POOL;
	free(tree.calls);
	hash_index_deinit(&tree.index);
}

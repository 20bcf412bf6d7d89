// SPDX-License-Identifier: MIT
#include "held_tasks.h"

#include <ctype.h>
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

// Of one thread's time: how far the number of threads that have a place may be from a whole number.
enum { MAX_OFF_PERCENT = 5 };

// An own function of the program's, called by certain others.
struct call {
	uint32_t parent;   // a call; 0: a thread's first own function
	uint32_t function; // of the symbols
	double ns;         // in it, and in what it calls
	bool is_known;     // the rule is
	enum rule rule;    // of waiting on a condition
};

// The first call is none: threads that are in no own function.
struct call_tree {
	struct call *calls;
	size_t n, capacity;
	struct hash_index index;
};

static uint32_t intern(struct call_tree *tree, uint32_t parent, uint32_t function)
{
	const struct call call = {.parent = parent, .function = function};

	return hash_intern(&tree->index, tree->calls, tree->n, tree->capacity, call,
	                   offsetof(struct call, function) + sizeof(call.function));
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

struct finder {
	const struct profile *profile;
	const uint8_t *rules;
	struct call_tree tree;
	uint32_t *ids; // of each sample's innermost call
};

static bool is_below(const struct call *calls, uint32_t id, uint32_t outer)
{
	while (id && id != outer)
		id = calls[id].parent;
	return id == outer;
}

// True if the sample's thread is in the task, does not wait in that call, and is not idle.
static bool has_place(const struct finder *finder, size_t i, uint32_t task, uint32_t id)
{
	const struct call *calls = finder->tree.calls;

	return finder->ids[i] && finder->rules[i] != RULE_IDLE &&
	       is_below(calls, finder->ids[i], task) && !is_below(calls, finder->ids[i], id);
}

// True if, of the threads that wait in that call, always the same number go on with the task
// meanwhile, but not always the same threads: they take turns.
static bool takes_turns(const struct finder *finder, uint32_t task, uint32_t id)
{
	enum { WAITS = 1, HAS_PLACE = 2 };
	const struct profile *profile = finder->profile;
	_cleanup_free_ uint8_t *seen = memory_alloc_zeroed(profile->n_threads + 1, 1);
	double others = 0;
	uint64_t n = 0;

	for (size_t i = 0; i < profile->n_samples; i++)
		if (finder->ids[i] && is_below(finder->tree.calls, finder->ids[i], id))
			seen[profile->samples[i].thread] = WAITS;
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		if (!seen[sample->thread] || !has_place(finder, i, task, id))
			continue;
		n += seen[sample->thread] == WAITS;
		seen[sample->thread] = HAS_PLACE;
		others += (double)sample->wall_ns / (double)profile->duration_ns;
	}
	const uint64_t places = (uint64_t)(others + 0.5);
	const double off = 100 * (others - (double)places);
	return places > 0 && off <= MAX_OFF_PERCENT && off >= -MAX_OFF_PERCENT && n > places + 1;
}

static bool is_in_task(const struct finder *finder, uint32_t id)
{
	const struct call *calls = finder->tree.calls;
	const double least_ns =
	    (100 - MAX_OFF_PERCENT) * (double)finder->profile->duration_ns / 100;

	for (uint32_t task = calls[id].parent; calls[task].parent; task = calls[task].parent)
		if (least_ns > 0 && calls[task].ns - calls[id].ns >= least_ns &&
		    takes_turns(finder, task, id))
			return true;
	return false;
}

// Returns what the function, which waits on a condition, waits for by its name; RULE_IDLE: it does
// not say.
static enum rule rule_of_name(const char *name)
{
	static const struct {
		const char *begin;
		enum rule rule;
	} names[] = {
	    {"checkout", RULE_POOL}, {"check_out", RULE_POOL}, {"acquire", RULE_POOL},
	    {"borrow", RULE_POOL},   {"put", RULE_SEND},       {"push", RULE_SEND},
	    {"enqueue", RULE_SEND},
	};
	const char *last = name; // "checkout" of "ConnectionPool::checkout"

	for (const char *c = name; *c && *c != '<'; c++)
		if ((*c == ':' || *c == '.') && c[1])
			last = c + 1;
	for (size_t i = 0; i < array_size(names); i++) {
		const size_t length = strlen(names[i].begin);
		if (strncasecmp(last, names[i].begin, length) == 0 && !islower(last[length]))
			return names[i].rule; // but no "pusher"
	}
	return RULE_IDLE;
}

void held_tasks_find(struct explanation *explanation, uint8_t *rules)
{
	const struct profile *profile = explanation->report->profile;
	struct finder finder = {
	    .profile = profile,
	    .rules = rules,
	    .ids = memory_alloc_zeroed(profile->n_samples + 1, sizeof(*finder.ids)),
	};
	struct call_tree *tree = &finder.tree;

	*array_push(tree->calls, tree->n, tree->capacity) = (struct call){0};
	for (size_t i = 0; i < profile->n_samples; i++)
		if (explain_is_selected(explanation, i))
			finder.ids[i] = add(tree, explanation, &profile->samples[i]);
	for (size_t i = 0; i < profile->n_samples; i++) {
		struct call *call = &tree->calls[finder.ids[i]];
		if (finder.ids[i] == 0 || rules[i] != RULE_IDLE ||
		    sample_kind(&explanation->kinds, &profile->samples[i]) != WAIT_KIND_CONDITION)
			continue;
		if (!call->is_known) {
			const char *name = explain_function(explanation, call->function)->name;
			// A thread's first function of its own is called by nobody who gives.
			call->rule = is_in_task(&finder, finder.ids[i]) ? RULE_POOL
			             : call->parent                     ? rule_of_name(name)
			                                                : RULE_IDLE;
			call->is_known = true;
		}
		rules[i] = (uint8_t)call->rule;
	}
	free(finder.ids);
	free(tree->calls);
	hash_index_deinit(&tree->index);
}

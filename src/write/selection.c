// SPDX-License-Identifier: MIT
#include "selection.h"

#include <string.h>

#include "frame_name.h"
#include "labels.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "symbolize.h"
#include "syscall_name.h"

// What was found out about a location, wait or set of labels, each of which is looked at once.
enum { LOOKED_AT = 1, IN_FOCUS = 2, IGNORED = 4, HAS_LABELS = 8 };

struct selector {
	const struct selection *selection;
	const struct profile *profile;
	const struct modules *modules;
	const struct symbols *symbols;
	bool syscalls;
	unsigned char *locations, *waits, *labels; // those bits, of each
};

static bool matches(const struct selection *selection, enum selection_regex which, const char *text)
{
	return regexec(selection->regexes[which], text, 0, NULL, 0) == 0;
}

static unsigned char look_at_name(const struct selector *selector, const char *name)
{
	const struct selection *selection = selector->selection;
	unsigned char bits = LOOKED_AT;

	if (selection->regexes[SELECTION_FOCUS] && matches(selection, SELECTION_FOCUS, name))
		bits |= IN_FOCUS;
	if (selection->regexes[SELECTION_IGNORE] && matches(selection, SELECTION_IGNORE, name))
		bits |= IGNORED;
	return bits;
}

static unsigned char look_at_location(const struct selector *selector, uint32_t id)
{
	const struct location_lines *lines = &selector->symbols->locations[id];
	const struct location *location = &selector->profile->locations[id];
	unsigned char *bits = &selector->locations[id];

	if (*bits & LOOKED_AT)
		return *bits;
	for (uint32_t i = 0; i < lines->count; i++) {
		const struct line *line = &selector->symbols->lines[lines->first + i];
		*bits |= look_at_name(selector, selector->symbols->functions[line->function].name);
	}
	if (lines->count == 0) {
		_cleanup_free_ char *name = frame_name_unresolved(
		    selector->modules->items[location->module], location->address);
		*bits |= look_at_name(selector, name);
	}
	return *bits;
}

static unsigned char look_at_wait(const struct selector *selector, uint32_t id)
{
	unsigned char *bits = &selector->waits[id];

	for (size_t i = 0; id != WAIT_NONE && !(*bits & LOOKED_AT); i++) {
		_cleanup_free_ char *name =
		    frame_name_wait(&selector->profile->waits[id], selector->syscalls, i);
		if (!name)
			break;
		*bits |= look_at_name(selector, name) & ~LOOKED_AT;
	}
	return *bits |= LOOKED_AT;
}

static bool frames_match(const struct selector *selector, const struct sample *sample)
{
	const struct stack *stack = &selector->profile->stacks[sample->stack];
	const enum stack_end end = frame_name_stack_end(stack);
	const uint32_t *ids = selector->profile->location_ids + stack->first;
	unsigned char bits = look_at_wait(selector, sample_leaf_wait(selector->profile, sample));

	for (uint32_t i = 0; i < stack->n_frames; i++)
		bits |= look_at_location(selector, ids[i]);
	if (end != STACK_COMPLETE) {
		_cleanup_free_ char *name = frame_name_truncated(end);
		bits |= look_at_name(selector, name);
	}
	if (bits & IGNORED)
		return false;
	return bits & IN_FOCUS || !selector->selection->regexes[SELECTION_FOCUS];
}

static bool syscall_matches(const struct selector *selector, const struct sample *sample)
{
	if (sample->wait == WAIT_NONE)
		return false;
	const int number = selector->profile->waits[sample->wait].syscall;
	if (number == NO_SYSCALL)
		return false;
	_cleanup_free_ char *name = syscall_name(number);
	return matches(selector->selection, SELECTION_SYSCALL, name);
}

bool selection_has_labels(const struct label_filter *filters, size_t n,
                          const struct profile *profile, uint32_t labels)
{
	const char *text = labels == LABELS_NONE ? "" : profile->labels[labels];

	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *value = labels_find(text, filters[i].key);
		if (!value || regexec(&filters[i].regex, value, 0, NULL, 0) != 0)
			return false;
	}
	return true;
}

static bool labels_match(const struct selector *selector, uint32_t id)
{
	const struct selection *selection = selector->selection;
	unsigned char *bits = &selector->labels[id];

	if (!(*bits & LOOKED_AT) &&
	    selection_has_labels(selection->label_filters, selection->n_label_filters,
	                         selector->profile, id))
		*bits |= HAS_LABELS;
	*bits |= LOOKED_AT;
	return *bits & HAS_LABELS;
}

static bool is_selected(const struct selector *selector, const struct sample *sample)
{
	const struct selection *selection = selector->selection;
	const char *thread = selector->profile->threads[sample->thread].name;

	if (selection->states && !(selection->states >> sample->state & 1))
		return false;
	if (selection->regexes[SELECTION_THREAD] && !matches(selection, SELECTION_THREAD, thread))
		return false;
	if (selection->regexes[SELECTION_SYSCALL] && !syscall_matches(selector, sample))
		return false;
	if (!labels_match(selector, sample->labels))
		return false;
	if (!selection->regexes[SELECTION_FOCUS] && !selection->regexes[SELECTION_IGNORE])
		return true;
	return frames_match(selector, sample);
}

bool *selection_apply(const struct selection *selection, const struct profile *profile,
                      const struct modules *modules, const struct symbols *symbols, bool syscalls)
{
	bool *selected = memory_alloc_zeroed(profile->n_samples + 1, sizeof(*selected));
	_cleanup_free_ unsigned char *locations = memory_alloc_zeroed(profile->n_locations + 1, 1);
	_cleanup_free_ unsigned char *waits = memory_alloc_zeroed(profile->n_waits + 1, 1);
	_cleanup_free_ unsigned char *labels = memory_alloc_zeroed(profile->n_labels + 1, 1);
	const struct selector selector = {
	    .selection = selection,
	    .profile = profile,
	    .modules = modules,
	    .symbols = symbols,
	    .syscalls = syscalls,
	    .locations = locations,
	    .waits = waits,
	    .labels = labels,
	};

	for (size_t i = 0; i < profile->n_samples; i++)
		selected[i] = is_selected(&selector, &profile->samples[i]);
	return selected;
}

// SPDX-License-Identifier: MIT
#include "selection.h"

#include <stdlib.h>

#include "frame_table.h"
#include "labels.h"
#include "memory.h"
#include "profile.h"
#include "syscall_name.h"
#include "writer.h"

// What was found out about a frame's name or a set of labels, each of which is looked at once.
enum { LOOKED_AT = 1, IN_FOCUS = 2, IGNORED = 4, HAS_LABELS = 8 };

struct selector {
	const struct selection *selection;
	const struct profile *profile;
	struct frame_table frames;
	unsigned char *names; // those bits, of each string of the frames
	size_t n_names, names_capacity;
	unsigned char *labels; // likewise, of each set
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

static unsigned char look_at_frame(struct selector *selector, uint32_t frame)
{
	const struct frame_table *frames = &selector->frames;
	const uint32_t name = frames->functions[frames->frames[frame].function].name;

	while (selector->n_names <= name)
		*array_push(selector->names, selector->n_names, selector->names_capacity) = 0;
	unsigned char *bits = &selector->names[name];
	if (!*bits)
		*bits = look_at_name(selector, frame_table_string(frames, name));
	return *bits;
}

static bool frames_match(struct selector *selector, const struct sample *sample)
{
	unsigned char bits = 0;
	size_t n;
	const uint32_t *frames = frame_table_stack(&selector->frames, sample, &n);

	for (size_t i = 0; i < n; i++)
		bits |= look_at_frame(selector, frames[i]);
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

static bool is_selected(struct selector *selector, const struct sample *sample)
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
	_cleanup_free_ unsigned char *labels = memory_alloc_zeroed(profile->n_labels + 1, 1);
	const struct report report = {
	    .profile = profile, .modules = modules, .symbols = symbols, .syscalls = syscalls};
	struct selector selector = {.selection = selection, .profile = profile, .labels = labels};

	frame_table_init(&selector.frames, &report);
	for (size_t i = 0; i < profile->n_samples; i++)
		selected[i] = is_selected(&selector, &profile->samples[i]);
	frame_table_deinit(&selector.frames);
	free(selector.names);
	return selected;
}

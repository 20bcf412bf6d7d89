// SPDX-License-Identifier: MIT
#include "top_source.h"

#include <stdlib.h>

#include "clock.h"
#include "local_files.h"
#include "memory.h"
#include "slice.h"
#include "symbolize.h"
#include "top_own.h"
#include "weights.h"

enum { MIN_SPANS = 1 << 16, BATCH = 256 };

struct error *top_source_open(const char *path, const struct debug_sources *sources, bool inlines,
                              struct top_source *ret)
{
	const struct symbolize_options names = {.inlines = inlines};
	struct recording *recording = &ret->recording;

	*ret = (struct top_source){.ended = true};
	struct error *error = recording_open(path, recording);
	if (error)
		return error;
	modules_set_debug_sources(&recording->modules, sources);
	timeline_init(&ret->timeline, INT64_MIN, INT64_MAX);
	profile_follow(&recording->profile, &ret->timeline.follower);
	figures_log_init(&ret->figures);
	profile_follow(&recording->profile, &ret->figures.follower);
	recording_replay(recording);
	recording->profile.followers = NULL;
	ret->now_ns = recording->profile.duration_ns;
	recording_find_names(recording, NULL, &names);
	return NULL;
}

void top_source_begin(const struct debug_sources *sources, bool inlines, int64_t keep_ns,
                      struct top_source *ret)
{
	const struct symbolize_options names = {.inlines = inlines};

	*ret = (struct top_source){.is_stream = true, .keep_ns = keep_ns};
	recording_begin_stream(&ret->recording);
	modules_set_debug_sources(&ret->recording.modules, sources);
	ret->symbolizer = symbolizer_create(&names, &ret->recording.symbols);
	timeline_init(&ret->timeline, INT64_MIN, INT64_MAX);
	profile_follow(&ret->recording.profile, &ret->timeline.follower);
	figures_log_init(&ret->figures);
	profile_follow(&ret->recording.profile, &ret->figures.follower);
}

static void forget(struct top_source *source)
{
	struct timeline *timeline = &source->timeline;
	size_t kept = 0;

	for (size_t i = 0; i < timeline->n_spans; i++)
		if (timeline->spans[i].end_ns >= source->now_ns - source->keep_ns)
			timeline->spans[kept++] = timeline->spans[i];
	timeline->n_spans = kept;
	figures_log_forget(&source->figures, source->now_ns - source->keep_ns);
	source->forget_above = kept > MIN_SPANS / 2 ? 2 * kept : MIN_SPANS;
}

bool top_source_feed(struct top_source *source, int files, const void *bytes, size_t size)
{
	recording_take_files(&source->recording, files);
	if (!recording_feed(&source->recording, bytes, size))
		return false;
	source->now_ns = recording_now_ns(&source->recording);
	recording_follow_clock(&source->recording);
	if (source->timeline.n_spans > source->forget_above)
		forget(source);
	return true;
}

void top_source_end(struct top_source *source)
{
	if (source->ended)
		return;
	recording_end_stream(&source->recording);
	source->recording.profile.followers = NULL;
	source->now_ns = source->recording.profile.duration_ns;
	source->ended = true;
}

static bool is_made(const struct top_source *source, uint32_t id)
{
	const struct recording *recording = &source->recording;
	const uint32_t module = recording->profile.locations[id].module;

	return recording->symbols.locations[id].count == 0 &&
	       recording->modules.items[module]->kind == MODULE_ANONYMOUS;
}

void top_source_find_names(struct top_source *source, int64_t budget_ns)
{
	struct recording *recording = &source->recording;
	const int64_t until_ns = clock_now_ns() + budget_ns;
	const size_t n = recording->profile.n_locations;
	_cleanup_free_ char *root = memory_printf("/proc/%d/root", recording->pid);
	uint32_t ids[BATCH];
	size_t n_ids = 0;

	if (source->n_looked_up < n)
		local_files_find(&recording->modules, root);
	if (source->n_codes != recording->n_codes) // may name what had no name
		for (uint32_t i = 0; i < source->n_looked_up && n_ids < BATCH; i++)
			if (is_made(source, i))
				ids[n_ids++] = i;
	source->n_codes = recording->n_codes;
	do {
		while (source->n_looked_up < n && n_ids < BATCH)
			ids[n_ids++] = (uint32_t)source->n_looked_up++;
		symbolizer_look_up(source->symbolizer, &recording->profile, &recording->modules,
		                   ids, n_ids);
		n_ids = 0;
	} while (source->n_looked_up < n && clock_now_ns() < until_ns);
}

void top_source_deinit(struct top_source *source)
{
	timeline_deinit(&source->timeline);
	figures_log_deinit(&source->figures);
	symbolizer_destroy(source->symbolizer);
	recording_deinit(&source->recording);
	free(source->selected);
	if (source->own)
		top_own_deinit(source->own);
	free(source->own);
	free(source->spans);
	free(source->weights);
	*source = (struct top_source){0};
}

void top_source_select(struct top_source *source, bool *selected)
{
	free(source->selected);
	source->selected = selected;
}

static int compare(const void *a_pointer, const void *b_pointer)
{
	const struct span *a = a_pointer, *b = b_pointer;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

// The span that the thread is in still, as it has probably gone on until now: at the stream's end
// it is known how many ticks it had.
static struct span prolonged(const struct top_source *source, const struct thread *thread)
{
	const struct recording *recording = &source->recording;
	struct span span = thread->span;

	span.end_ns = thread->last_ns;
	if (thread->ended || span.count == 0 || source->now_ns <= thread->last_ns)
		return span;
	const double ticks_per_ns =
	    recording->ticks > 1 ? (double)(recording->ticks - 1) / (double)source->now_ns : 0;
	span.count += (uint64_t)((double)(source->now_ns - thread->last_ns) * ticks_per_ns + 0.5);
	span.end_ns = source->now_ns;
	return span;
}

// The spans that touch the time, by thread and time. Returns how many there are in source->spans.
static size_t collect_spans(struct top_source *source, int64_t from_ns, int64_t to_ns)
{
	const struct timeline *timeline = &source->timeline;
	const struct profile *profile = &source->recording.profile;
	size_t n = 0;

	for (size_t i = 0; i < timeline->n_spans; i++) {
		const struct span *span = &timeline->spans[i];
		if (span->end_ns >= from_ns && span->start_ns < to_ns)
			*array_push(source->spans, n, source->spans_capacity) = *span;
	}
	for (size_t i = 0; i < profile->n_threads && !source->ended; i++) {
		const struct span span = prolonged(source, &profile->threads[i]);
		if (span.count > 0 && span.end_ns >= from_ns && span.start_ns < to_ns)
			*array_push(source->spans, n, source->spans_capacity) = span;
	}
	if (n > 0)
		qsort(source->spans, n, sizeof(*source->spans), compare);
	return n;
}

// What the samples of the window stand for, whichever are selected.
static struct weights *find_weights(const struct top_source *source, size_t n_spans,
                                    int64_t from_ns, int64_t to_ns)
{
	const struct profile *profile = &source->recording.profile;
	struct slice slice;

	slice_init(&slice, from_ns, to_ns);
	for (size_t i = 0; i < n_spans; i++)
		slice_add(&slice, profile, &source->spans[i]);
	figures_log_fill(&source->figures, profile, source->spans, n_spans, &slice);
	const struct profile view = slice_view(&slice, profile);
	struct weights *weights = weights_of_profile(&view);
	slice_deinit(&slice);
	return weights;
}

void top_source_look(struct top_source *source, int64_t from_ns, int64_t to_ns,
                     const struct top_choice *choice, struct top_model *ret)
{
	const struct recording *recording = &source->recording;
	const int64_t history_ns = to_ns - TOP_HISTORY_NS;

	if (!source->own)
		source->own = memory_alloc_zeroed(1, sizeof(*source->own));
	top_own_update(source->own, &recording->profile, &recording->modules, &recording->symbols);
	const size_t n = collect_spans(source, from_ns < history_ns ? from_ns : history_ns, to_ns);

	free(source->weights);
	source->weights = choice->counts ? NULL : find_weights(source, n, from_ns, to_ns);
	top_model_init(ret, &(struct top_input){
	                        .weights = source->weights,
	                        .profile = &source->recording.profile,
	                        .modules = &source->recording.modules,
	                        .symbols = &source->recording.symbols,
	                        .spans = source->spans,
	                        .n_spans = n,
	                        .selected = source->selected,
	                        .cpu_log = &source->recording.cpu_log,
	                        .from_ns = from_ns,
	                        .to_ns = to_ns,
	                        .own = source->own,
	                        .choice = *choice,
	                    });
}

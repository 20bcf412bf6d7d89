#include "top_source.h"

#include <stdlib.h>

#include "error.h"
#include "local_files.h"
#include "memory.h"
#include "symbolize.h"

const struct symbols *top_source_symbols(const struct top_source *source)
{
	return source->recording.has_symbols ? &source->recording.symbols : &source->found;
}

struct error *top_source_open(const char *path, const struct debug_sources *sources, bool inlines,
                              struct top_source *ret)
{
	const struct symbolize_options names = {.inlines = inlines};
	struct recording *recording = &ret->recording;

	*ret = (struct top_source){.inlines = inlines, .ended = true};
	struct error *error = recording_open(path, recording);
	if (error)
		return error;
	modules_set_debug_sources(&recording->modules, sources);
	timeline_init(&ret->timeline, INT64_MIN, INT64_MAX);
	profile_follow(&recording->profile, &ret->timeline.follower);
	recording_replay(recording);
	recording->profile.followers = NULL;
	ret->now_ns = recording->profile.duration_ns;
	if (!recording->has_symbols) {
		local_files_find(&recording->modules);
		symbolize(&recording->profile, &recording->modules, &names, &ret->found);
	}
	return NULL;
}

void top_source_deinit(struct top_source *source)
{
	timeline_deinit(&source->timeline);
	symbols_deinit(&source->found);
	recording_deinit(&source->recording);
	free(source->selected);
	free(source->spans);
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

// The spans that touch the time, by thread and time. Returns how many there are in source->spans.
static size_t collect_spans(struct top_source *source, int64_t from_ns, int64_t to_ns)
{
	const struct timeline *timeline = &source->timeline;
	size_t n = 0;

	for (size_t i = 0; i < timeline->n_spans; i++) {
		const struct span *span = &timeline->spans[i];
		if (span->end_ns >= from_ns && span->start_ns < to_ns)
			*array_push(source->spans, n, source->spans_capacity) = *span;
	}
	if (n > 0)
		qsort(source->spans, n, sizeof(*source->spans), compare);
	return n;
}

void top_source_look(struct top_source *source, int64_t from_ns, int64_t to_ns, bool with_tree,
                     struct top_model *ret)
{
	const int64_t history_ns = to_ns - TOP_HISTORY_NS;
	const size_t n = collect_spans(source, from_ns < history_ns ? from_ns : history_ns, to_ns);

	top_model_init(ret, &(struct top_input){
	                        .profile = &source->recording.profile,
	                        .modules = &source->recording.modules,
	                        .symbols = top_source_symbols(source),
	                        .spans = source->spans,
	                        .n_spans = n,
	                        .selected = source->selected,
	                        .from_ns = from_ns,
	                        .to_ns = to_ns,
	                        .with_tree = with_tree,
	                    });
}

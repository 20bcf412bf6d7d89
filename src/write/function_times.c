// SPDX-License-Identifier: MIT
#include "function_times.h"

#include <stdlib.h>

#include "clock.h"
#include "frame_table.h"
#include "memory.h"
#include "timeline.h"
#include "writer.h"

// The functions of a sample, each once.
struct members {
	size_t first, count; // in ids
	bool known;
};

struct collector {
	const struct report *report;
	struct function_names *names;
	struct frame_table frames;
	struct members *samples;
	uint32_t *ids;
	size_t n_ids, ids_capacity;
	int64_t start_ns, bin_ns;
};

void function_names_deinit(struct function_names *names)
{
	string_table_deinit(&names->strings);
	free(names->own);
	free(names->depth);
}

void function_times_deinit(struct function_times *times)
{
	free(times->values);
	free(times->all);
	free(times->seconds);
	*times = (struct function_times){0};
}

static int64_t start_of(const struct report *report)
{
	const int64_t from_ns = report->timeline->from_ns, start_ns = report->profile->start_ns;

	return from_ns > start_ns ? from_ns : start_ns;
}

int64_t function_times_duration_ns(const struct report *report)
{
	const int64_t end_ns = report->profile->start_ns + report->profile->duration_ns;
	const int64_t to_ns = report->timeline->to_ns < end_ns ? report->timeline->to_ns : end_ns;
	const int64_t start_ns = start_of(report);

	return to_ns > start_ns ? to_ns - start_ns : 0;
}

static uint32_t name_function(struct collector *collector, const struct frame_function *function,
                              size_t depth)
{
	struct function_names *names = collector->names;
	const size_t n_before = names->strings.count;
	const uint32_t id = string_table_intern(
	    &names->strings, frame_table_string(&collector->frames, function->name));

	names->own = memory_grow(names->own, &names->own_size, id + 1, sizeof(*names->own));
	names->depth = memory_grow(names->depth, &names->depth_size, id + 1, sizeof(*names->depth));
	if (id == n_before) {
		names->own[id] = false;
		names->depth[id] = (uint32_t)depth;
	}
	names->own[id] |= function->own;
	return id;
}

static bool has_id(const struct collector *collector, size_t first, uint32_t id)
{
	for (size_t i = first; i < collector->n_ids; i++)
		if (collector->ids[i] == id)
			return true;
	return false;
}

static const struct members *members_of(struct collector *collector, uint32_t sample)
{
	struct members *members = &collector->samples[sample];
	size_t n;

	if (members->known)
		return members;
	*members = (struct members){.first = collector->n_ids, .known = true};
	const uint32_t *stack =
	    frame_table_stack(&collector->frames, &collector->report->profile->samples[sample], &n);
	for (size_t i = 0; i < n; i++) {
		const struct frame_table *table = &collector->frames;
		const struct frame_function *function =
		    &table->functions[table->frames[stack[i]].function];
		if (function->kind == FRAME_KERNEL || function->kind == FRAME_END)
			continue;
		const uint32_t id = name_function(collector, function, i);
		if (!has_id(collector, members->first, id))
			*array_push(collector->ids, collector->n_ids, collector->ids_capacity) = id;
	}
	members->count = collector->n_ids - members->first;
	return members;
}

static void make_bins(struct function_times *times, const struct collector *collector)
{
	const int64_t duration_ns = function_times_duration_ns(collector->report);
	const int64_t bin_ns = collector->bin_ns;

	times->n_bins = (size_t)((duration_ns + bin_ns - 1) / bin_ns);
	times->n_functions = collector->names->strings.count;
	times->values =
	    memory_alloc_zeroed(times->n_functions * times->n_bins + 1, sizeof(*times->values));
	times->all = memory_alloc_zeroed(times->n_bins + 1, sizeof(*times->all));
	times->seconds = memory_alloc_zeroed(times->n_bins + 1, sizeof(*times->seconds));
	for (size_t i = 0; i < times->n_bins; i++) {
		const int64_t rest_ns = duration_ns - (int64_t)i * bin_ns;
		times->seconds[i] = clock_seconds(rest_ns < bin_ns ? rest_ns : bin_ns);
	}
}

static void add_span(struct function_times *times, const struct collector *collector,
                     const struct span *span)
{
	const struct members *members = &collector->samples[span->sample];
	const int64_t bin_ns = collector->bin_ns;
	int64_t at_ns = span->start_ns - collector->start_ns;
	const int64_t end_ns = span->end_ns - collector->start_ns;

	if (at_ns < 0)
		at_ns = 0;
	for (size_t bin = (size_t)(at_ns / bin_ns); at_ns < end_ns && bin < times->n_bins; bin++) {
		const int64_t bin_end_ns = (int64_t)(bin + 1) * bin_ns;
		const int64_t to_ns = end_ns < bin_end_ns ? end_ns : bin_end_ns;
		const double seconds = clock_seconds(to_ns - at_ns);
		times->all[bin] += seconds;
		for (size_t i = 0; i < members->count; i++)
			times->values[collector->ids[members->first + i] * times->n_bins + bin] +=
			    seconds;
		at_ns = to_ns;
	}
}

void function_times_init(struct function_times *ret, const struct report *report, int64_t bin_ns,
                         struct function_names *names)
{
	const struct timeline *timeline = report->timeline;
	struct collector collector = {
	    .report = report,
	    .names = names,
	    .samples =
	        memory_alloc_zeroed(report->profile->n_samples + 1, sizeof(*collector.samples)),
	    .start_ns = start_of(report),
	    .bin_ns = bin_ns,
	};

	*ret = (struct function_times){0};
	frame_table_init(&collector.frames, report);
	for (size_t i = 0; i < timeline->n_spans; i++)
		members_of(&collector, timeline->spans[i].sample);
	make_bins(ret, &collector);
	for (size_t i = 0; i < timeline->n_spans; i++)
		add_span(ret, &collector, &timeline->spans[i]);
	frame_table_deinit(&collector.frames);
	free(collector.samples);
	free(collector.ids);
}

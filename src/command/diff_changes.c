// SPDX-License-Identifier: MIT
#include "diff_changes.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "diff_folded.h"
#include "error.h"
#include "function_times.h"
#include "hash.h"
#include "input_limit.h"
#include "memory.h"
#include "options.h"
#include "selection.h"
#include "writer.h"

enum {
	MIN_TICKS = 50, // of a function, on both sides together: chance alone decides on fewer
	MIN_BINS = 512, // of the shorter recording, where ticks allow it...
	MIN_BIN_TICKS = 4,
	MAX_BINS = 8192,      // ...and of the longest one
	MAX_VALUES = 1 << 24, // of a recording: functions * bins
};

#define LEVEL 0.95
#define MAX_BIN_NS 1e18
#define DEFAULT_MARGIN 0.05
#define LEAST_LONGER 0.1
#define MAX_SECONDS 1e9

// The recordings of a side as times in functions.
struct timed_side {
	struct function_times *times;
	size_t n;
	struct change_stretch *stretches; // of one function
};

struct comparison {
	const struct options *options;
	struct diff_side *sides[2];
	struct timed_side timed[2];
	struct function_names names;
	double *zeros; // a row of bins without time
	double period_s;
	int64_t bin_ns;
};

// The recording as a report, of which *ret_selected is to be freed.
static struct report report_of(struct diff_input *input, bool **ret_selected)
{
	const struct selection selection = options_selection(&input->options);
	struct report report = {
	    .profile = &input->recording.profile,
	    .modules = &input->recording.modules,
	    .symbols = &input->recording.symbols,
	    .timeline = &input->timeline,
	};

	*ret_selected = selection_apply(&selection, report.profile, report.modules, report.symbols,
	                                input->options.syscalls);
	return report;
}

// What the recordings of both sides have in common.
struct extent {
	int64_t shortest_ns, longest_ns, period_ns;
	size_t n_functions; // of the one with most, at most
};

static void extend(struct extent *extent, struct diff_input *input)
{
	const struct profile *profile = &input->recording.profile;
	const struct report report = {.profile = profile, .timeline = &input->timeline};
	const int64_t ns = function_times_duration_ns(&report);
	const size_t n = input->recording.symbols.n_functions + profile->n_locations;

	if (ns < extent->shortest_ns)
		extent->shortest_ns = ns;
	if (ns > extent->longest_ns)
		extent->longest_ns = ns;
	if (profile->period_ns > extent->period_ns)
		extent->period_ns = profile->period_ns;
	if (n > extent->n_functions)
		extent->n_functions = n;
}

static void choose_bins(struct comparison *comparison)
{
	struct extent extent = {.shortest_ns = INT64_MAX, .period_ns = 1};

	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < comparison->sides[side]->count; i++)
			extend(&extent, comparison->sides[side]->items[i]);
	const double longest_ns = (double)extent.longest_ns;
	double bin_ns = (double)extent.shortest_ns / MIN_BINS;
	bin_ns = fmax(bin_ns, longest_ns / MAX_BINS);
	bin_ns = fmax(bin_ns, longest_ns * (double)extent.n_functions / MAX_VALUES);
	bin_ns = fmax(bin_ns, MIN_BIN_TICKS * (double)extent.period_ns);
	comparison->period_s = clock_seconds(extent.period_ns);
	comparison->bin_ns = bin_ns < MAX_BIN_NS ? (int64_t)bin_ns : (int64_t)MAX_BIN_NS;
}

static void add_up(struct comparison *comparison, int side)
{
	struct timed_side *timed = &comparison->timed[side];
	const struct diff_side *from = comparison->sides[side];

	*timed = (struct timed_side){
	    .times = memory_alloc_zeroed(from->count, sizeof(*timed->times)),
	    .n = from->count,
	    .stretches = memory_alloc_zeroed(from->count, sizeof(*timed->stretches)),
	};
	for (size_t i = 0; i < from->count; i++) {
		bool *selected;
		const struct report report = report_of(from->items[i], &selected);
		timeline_select(report.timeline, selected);
		function_times_init(&timed->times[i], &report, comparison->bin_ns,
		                    &comparison->names);
		free(selected);
	}
}

static size_t most_bins(const struct comparison *comparison)
{
	size_t most = 0;

	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < comparison->timed[side].n; i++)
			if (comparison->timed[side].times[i].n_bins > most)
				most = comparison->timed[side].times[i].n_bins;
	return most;
}

static const double *row_of(const struct comparison *comparison, const struct function_times *times,
                            size_t function)
{
	return function < times->n_functions ? times->values + function * times->n_bins
	                                     : comparison->zeros;
}

// Of a side: the time in the function, of all threads, and its length.
struct sums {
	double function, all, seconds;
};

static struct sums sums_of(const struct comparison *comparison, int side, size_t function)
{
	const struct timed_side *timed = &comparison->timed[side];
	struct sums sums = {0};

	for (size_t i = 0; i < timed->n; i++) {
		const struct function_times *times = &timed->times[i];
		sums.function += change_sum(row_of(comparison, times, function), times->n_bins);
		sums.all += change_sum(times->all, times->n_bins);
		sums.seconds += change_sum(times->seconds, times->n_bins);
	}
	return sums;
}

static uint64_t hash_rows(const struct comparison *comparison, size_t function)
{
	uint64_t hash = 0;

	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < comparison->timed[side].n; i++) {
			const struct function_times *times = &comparison->timed[side].times[i];
			hash = hash_mix(hash, hash_bytes(row_of(comparison, times, function),
			                                 times->n_bins * sizeof(double)));
		}
	return hash;
}

struct row_key {
	const uint32_t *functions; // by id of the index
	size_t function;
};

static bool rows_equal(const void *context, uint32_t id, const void *key)
{
	const struct row_key *sought = key;
	const struct comparison *comparison = context;
	const size_t a = sought->functions[id], b = sought->function;

	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < comparison->timed[side].n; i++) {
			const struct function_times *times = &comparison->timed[side].times[i];
			if (memcmp(row_of(comparison, times, a), row_of(comparison, times, b),
			           times->n_bins * sizeof(double)) != 0)
				return false;
		}
	return true;
}

// True if the function `a` says more than `b`, which was always in the same stacks: the program's
// own one, or else the innermost.
static bool says_more(const struct function_names *names, uint32_t a, uint32_t b)
{
	if (names->own[a] != names->own[b])
		return names->own[a];
	return names->depth[a] > names->depth[b];
}

// The functions to compare: those with enough time, and of several that were always in the same
// stacks one.
struct chosen {
	uint32_t *functions;
	size_t n;
	uint32_t *groups; // of each name, which of the functions stands for it; HASH_NONE: none
};

static void choose_functions(const struct comparison *comparison, struct chosen *ret)
{
	const size_t n_names = comparison->names.strings.count;
	struct hash_index index = {0};

	ret->n = 0;
	ret->functions = memory_alloc_zeroed(n_names + 1, sizeof(*ret->functions));
	ret->groups = memory_alloc_zeroed(n_names + 1, sizeof(*ret->groups));
	for (uint32_t i = 0; i < n_names; i++) {
		const double seconds =
		    sums_of(comparison, 0, i).function + sums_of(comparison, 1, i).function;
		ret->groups[i] = HASH_NONE;
		if (seconds < MIN_TICKS * comparison->period_s)
			continue;
		const uint64_t hash = hash_rows(comparison, i);
		const struct row_key key = {ret->functions, i};
		uint32_t id = hash_index_find(&index, hash, rows_equal, comparison, &key);
		if (id == HASH_NONE) {
			id = (uint32_t)ret->n++;
			hash_index_insert(&index, hash, id);
			ret->functions[id] = i;
		} else if (says_more(&comparison->names, i, ret->functions[id])) {
			ret->functions[id] = i;
		}
		ret->groups[i] = id;
	}
	hash_index_deinit(&index);
}

static void chosen_deinit(struct chosen *chosen)
{
	free(chosen->functions);
	free(chosen->groups);
}

static struct change_side stretches_of(const struct comparison *comparison, int side,
                                       size_t function)
{
	const struct timed_side *timed = &comparison->timed[side];

	for (size_t i = 0; i < timed->n; i++) {
		const struct function_times *times = &timed->times[i];
		timed->stretches[i] = (struct change_stretch){
		    .values = row_of(comparison, times, function),
		    .totals = comparison->options->normalize ? times->all : times->seconds,
		    .n = times->n_bins,
		};
	}
	return (struct change_side){timed->stretches, timed->n};
}

static struct change find_change(const struct comparison *comparison, size_t function)
{
	const struct change_side before = stretches_of(comparison, 0, function);
	const struct change_side after = stretches_of(comparison, 1, function);

	return change_find(&before, &after, comparison->period_s);
}

static void set_shares(const struct comparison *comparison, size_t function,
                       struct function_change *ret)
{
	for (int side = 0; side < 2; side++) {
		const struct sums sums = sums_of(comparison, side, function);
		ret->shares[side] = sums.all > 0 ? sums.function / sums.all : 0;
		ret->seconds_a_second[side] = sums.seconds > 0 ? sums.function / sums.seconds : 0;
	}
}

static void judge(struct function_change *item, const struct change *change, double p,
                  double p_beyond, const struct diff_changes *changes)
{
	const double shorter = fmin(changes->seconds[0], changes->seconds[1]);

	item->relative = change_relative(change);
	item->half_width = change_half_width(change, LEVEL);
	item->beyond = p_beyond < 1 - LEVEL;
	item->may_be_beyond = !(item->relative + item->half_width <= changes->margin);
	if (p < 1 - LEVEL)
		item->verdict = CHANGE_CERTAIN;
	else if (fabs(item->relative) + item->half_width <= changes->margin)
		item->verdict = CHANGE_NONE;
	else
		item->verdict = CHANGE_UNSURE;
	// Either it is seen not to have changed, or the change is seen beside the other functions'.
	const double aim = fmax(changes->margin - fabs(item->relative), fabs(item->relative) / 2);
	const double longer = fmax(change_times_as_long(change, aim) - 1, LEAST_LONGER);
	item->more_seconds = fmin(shorter * longer, MAX_SECONDS);
}

static void add_item(const struct comparison *comparison, uint32_t function,
                     const struct change *change, double p, double p_beyond,
                     struct diff_changes *changes)
{
	struct function_change *item = array_push(changes->items, changes->n, changes->capacity);

	*item = (struct function_change){
	    .name = memory_strdup(comparison->names.strings.items[function]),
	    .own = comparison->names.own[function],
	};
	set_shares(comparison, function, item);
	judge(item, change, p, p_beyond, changes);
	changes->n_certain += item->verdict == CHANGE_CERTAIN;
}

static void compare_functions(const struct comparison *comparison, struct diff_changes *changes)
{
	struct chosen chosen;

	choose_functions(comparison, &chosen);
	const size_t n = chosen.n;
	_cleanup_free_ struct change *found = memory_alloc_zeroed(n + 1, sizeof(*found));
	_cleanup_free_ double *p = memory_alloc_zeroed(n + 1, sizeof(*p));
	_cleanup_free_ double *p_beyond = memory_alloc_zeroed(n + 1, sizeof(*p_beyond));

	for (size_t i = 0; i < n; i++)
		found[i] = find_change(comparison, chosen.functions[i]);
	change_disperse(found, n);
	for (size_t i = 0; i < n; i++) {
		p[i] = change_p(&found[i]);
		p_beyond[i] = change_p_more(&found[i], comparison->options->diff.check);
	}
	change_correct(p, n);
	change_correct(p_beyond, n);
	for (size_t i = 0; i < n; i++)
		add_item(comparison, chosen.functions[i], &found[i], p[i], p_beyond[i], changes);
	for (size_t i = 0; i < comparison->names.strings.count; i++)
		if (chosen.groups[i] != HASH_NONE &&
		    changes->items[chosen.groups[i]].verdict == CHANGE_CERTAIN)
			string_table_intern(&changes->certain, comparison->names.strings.items[i]);
	chosen_deinit(&chosen);
}

static void timed_side_deinit(struct timed_side *timed)
{
	for (size_t i = 0; i < timed->n; i++)
		function_times_deinit(&timed->times[i]);
	free(timed->times);
	free(timed->stretches);
}

static void find_timed(const struct options *options, struct diff_side *before,
                       struct diff_side *after, struct diff_changes *changes)
{
	struct comparison comparison = {.options = options, .sides = {before, after}};

	choose_bins(&comparison);
	for (int side = 0; side < 2; side++)
		add_up(&comparison, side);
	comparison.zeros = memory_alloc_zeroed(most_bins(&comparison) + 1, sizeof(double));
	for (int side = 0; side < 2; side++)
		changes->seconds[side] = sums_of(&comparison, side, 0).seconds;
	compare_functions(&comparison, changes);
	for (int side = 0; side < 2; side++)
		timed_side_deinit(&comparison.timed[side]);
	function_names_deinit(&comparison.names);
	free(comparison.zeros);
}

// The part of the change that is certain, in thread-seconds a second.
static double certain_part(const struct function_change *item)
{
	const double change = fabs(item->seconds_a_second[1] - item->seconds_a_second[0]);

	if (isinf(item->relative) || isinf(item->half_width))
		return change;
	return fmax(0, fabs(item->relative) - item->half_width) * item->seconds_a_second[0];
}

static double compare_shares(const struct function_change *a, const struct function_change *b)
{
	return fmax(b->shares[0], b->shares[1]) - fmax(a->shares[0], a->shares[1]);
}

static int compare_items(const void *a_pointer, const void *b_pointer)
{
	const struct function_change *a = a_pointer, *b = b_pointer;
	const bool a_certain = a->verdict == CHANGE_CERTAIN,
	           b_certain = b->verdict == CHANGE_CERTAIN;

	if (a_certain != b_certain)
		return a_certain ? -1 : 1;
	const double order = a_certain ? certain_part(b) - certain_part(a) : compare_shares(a, b);
	return order != 0 ? (order > 0 ? 1 : -1) : strcmp(a->name, b->name);
}

static int compare_untimed(const void *a_pointer, const void *b_pointer)
{
	const struct function_change *a = a_pointer, *b = b_pointer;
	const double order = fabs(b->shares[1] - b->shares[0]) - fabs(a->shares[1] - a->shares[0]);

	return order != 0 ? (order > 0 ? 1 : -1) : strcmp(a->name, b->name);
}

static struct error *find_untimed(const struct options *options, const struct diff_side *before,
                                  const struct diff_side *after, struct diff_changes *changes)
{
	struct folded_functions functions = {0};
	struct diff_texts texts;
	uint64_t n_bad = 0;
	struct error *error = diff_texts_init(options, before, after, &texts);

	if (!error)
		error = folded_functions_read(&texts.diff, &functions, &n_bad);
	for (size_t i = 0; i < functions.count && !error; i++) {
		struct function_change item = {
		    .name = memory_strdup(functions.names.items[i]),
		    .verdict = CHANGE_UNSURE,
		};
		for (int side = 0; side < 2; side++)
			if (functions.totals[side] > 0)
				item.shares[side] =
				    functions.items[i].counts[side] / functions.totals[side];
		*array_push(changes->items, changes->n, changes->capacity) = item;
	}
	folded_functions_deinit(&functions);
	diff_texts_deinit(&texts);
	diff_print_bad(n_bad);
	return error;
}

struct error *diff_changes_find(const struct options *options, struct diff_side *before,
                                struct diff_side *after, struct diff_changes *ret)
{
	struct error *error = NULL;

	*ret = (struct diff_changes){
	    .timed = before->is_recording && after->is_recording,
	    .margin = options->diff.check > 0 ? options->diff.check : DEFAULT_MARGIN,
	};
	if (ret->timed) {
		input_limit_end(); // what the comparison needs is bounded by MAX_VALUES
		find_timed(options, before, after, ret);
	} else {
		error = find_untimed(options, before, after, ret);
	}
	if (ret->n > 0)
		qsort(ret->items, ret->n, sizeof(*ret->items),
		      ret->timed ? compare_items : compare_untimed);
	return error;
}

void diff_changes_deinit(struct diff_changes *changes)
{
	for (size_t i = 0; i < changes->n; i++)
		free(changes->items[i].name);
	free(changes->items);
	string_table_deinit(&changes->certain);
	*changes = (struct diff_changes){0};
}

bool diff_changes_has(const struct diff_changes *changes, const char *name, size_t length)
{
	const struct string_key key = {name, length};
	uint32_t id;

	string_table_find(&changes->certain, &key, 1, &id);
	return id != HASH_NONE;
}

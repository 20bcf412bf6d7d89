// SPDX-License-Identifier: MIT
#include "waits_table.h"

#include <stdlib.h>
#include <string.h>

#include "call_text.h"
#include "frame_name.h"
#include "memory.h"
#include "options.h"
#include "profile.h"
#include "sample_kind.h"
#include "sample_work.h"
#include "selection.h"
#include "text.h"
#include "top_layout.h"
#include "top_model.h"
#include "top_own.h"
#include "top_table.h"
#include "wait_kind.h"
#include "write_report.h"

enum { MAX_ROWS = 20, MAX_NAME_BYTES = 64 };

// A wait, and what it is grouped by.
struct item {
	uint32_t sample;
	enum wait_kind kind;
	bool is_idle;
	int64_t what; // of a lock, the wait; else the call, whatever its descriptor
};

// Waits of the same stack for the same lock, or in the same call.
struct group {
	uint32_t sample; // the longest
	enum wait_kind kind;
	bool is_idle, is_several; // the latter: for different descriptors
	size_t n_waits, n_threads;
	int64_t longest_ns, total_ns;
};

// clang-format off
static const struct top_column columns[] = {
	{"LONGEST", 7, TOP_NUMBER, 0, false}, {"WAITS", 5, TOP_NUMBER, 0, false},
	{"TOTAL", 7, TOP_NUMBER, 80, false}, {"THREADS", 25, TOP_NAME, 0, false},
	{"KIND", 9, TOP_WORD, 0, false}, {"FOR", 1, TOP_TEXT, 0, false},
	{"WHERE", 1, TOP_TEXT, 0, false},
};
// clang-format on

static int compare_items(const void *a_pointer, const void *b_pointer, void *context)
{
	const struct sample *samples = context;
	const struct item *a = a_pointer, *b = b_pointer;
	const struct sample *a_sample = &samples[a->sample], *b_sample = &samples[b->sample];

	if (a_sample->stack != b_sample->stack)
		return a_sample->stack < b_sample->stack ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->what != b->what)
		return a->what < b->what ? -1 : 1;
	if (a_sample->thread != b_sample->thread)
		return a_sample->thread < b_sample->thread ? -1 : 1;
	return (a->sample > b->sample) - (a->sample < b->sample);
}

static int compare_groups(const void *a_pointer, const void *b_pointer)
{
	const struct group *a = a_pointer, *b = b_pointer;

	if (a->is_idle != b->is_idle)
		return a->is_idle ? 1 : -1;
	if (a->longest_ns != b->longest_ns)
		return a->longest_ns > b->longest_ns ? -1 : 1;
	return (a->sample > b->sample) - (a->sample < b->sample);
}

static void add(const struct profile *profile, uint32_t id, bool is_new_thread, struct group *group)
{
	const struct sample *sample = &profile->samples[id];

	group->n_waits++;
	group->n_threads += is_new_thread;
	group->total_ns += sample->wall_ns;
	if (sample->wall_ns <= group->longest_ns && group->n_waits > 1)
		return;
	group->longest_ns = sample->wall_ns;
	group->sample = id;
}

// The waits that are selected; the caller frees.
static struct item *find_items(const struct report_source *source, const bool *selected,
                               size_t *ret_count)
{
	const struct profile *profile = source->part;
	struct item *items = memory_alloc_zeroed(profile->n_samples + 1, sizeof(*items));
	struct sample_work *work = sample_work_create(profile, source->modules, source->symbols);
	struct sample_kinds kinds;
	size_t n = 0;

	sample_kinds_init(&kinds, profile, source->symbols);
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		const enum wait_kind kind = sample_kind(&kinds, sample);
		const int64_t what = kind == WAIT_KIND_LOCK ? (int64_t)sample->wait
		                                            : profile->waits[sample->wait].syscall;
		if (selected[i])
			items[n++] = (struct item){
			    .sample = (uint32_t)i,
			    .kind = kind,
			    .is_idle = sample_has_no_work(work, sample, kind),
			    .what = what,
			};
	}
	sample_kinds_deinit(&kinds);
	sample_work_destroy(work);
	if (n > 0)
		qsort_r(items, n, sizeof(*items), compare_items, profile->samples);
	*ret_count = n;
	return items;
}

static bool is_same_group(const struct profile *profile, const struct item *a, const struct item *b)
{
	return profile->samples[a->sample].stack == profile->samples[b->sample].stack &&
	       a->kind == b->kind && a->what == b->what;
}

// The groups of n waits; the caller frees.
static struct group *find_groups(const struct profile *profile, const struct item *items, size_t n,
                                 size_t *ret_count)
{
	const struct sample *samples = profile->samples;
	struct group *groups = memory_alloc_zeroed(n + 1, sizeof(*groups));
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		const struct sample *sample = &samples[items[i].sample];
		const bool is_new = i == 0 || !is_same_group(profile, &items[i - 1], &items[i]);
		count += is_new;
		struct group *group = &groups[count - 1];
		const bool is_other = !is_new && samples[group->sample].wait != sample->wait;
		const bool is_new_thread =
		    is_new || samples[items[i - 1].sample].thread != sample->thread;
		add(profile, items[i].sample, is_new_thread, group);
		group->kind = items[i].kind;
		group->is_several |= is_other;
		group->is_idle = items[i].is_idle;
	}
	if (count > 0)
		qsort(groups, count, sizeof(*groups), compare_groups);
	*ret_count = count;
	return groups;
}

static char *duration_text(int64_t ns)
{
	char text[CALL_TEXT_DURATION_SIZE];

	call_text_duration(ns, text);
	return memory_strdup(text);
}

static char *threads_text(const struct profile *profile, const struct group *group)
{
	const struct thread *thread = &profile->threads[profile->samples[group->sample].thread];
	_cleanup_free_ char *name = text_clean(thread->name, strlen(thread->name), MAX_NAME_BYTES);

	if (group->n_threads > 1)
		return memory_printf("%s +%zu", name, group->n_threads - 1);
	_cleanup_free_ char *number = frame_name_number(thread);
	return memory_printf("%s %s", name, number);
}

static char *thing_text(const struct top_model *model, const struct group *group)
{
	const struct sample *sample = &model->input.profile->samples[group->sample];

	if (group->kind == WAIT_KIND_RUNNABLE)
		return memory_strdup("a CPU");
	char *text = top_wait_text(top_waits_for(model, sample->wait));
	if (!group->is_several)
		return text;
	_cleanup_free_ char *first = text;
	return memory_printf("%s, ...", first);
}

static void fill(const struct top_model *model, const struct group *group, struct top_row *row)
{
	*row = (struct top_row){
	    .cells = {
	        duration_text(group->longest_ns),
	        memory_printf("%zu", group->n_waits),
	        duration_text(group->total_ns),
	        threads_text(model->input.profile, group),
	        memory_strdup(group->kind == WAIT_KIND_RUNNABLE ? "ready"
	                                                        : wait_kind_name(group->kind)),
	        thing_text(model, group),
	        top_where(model, group->sample),
	    }};
}

static void print(const struct top_model *model, const struct group *groups, size_t n, int width,
                  FILE *stream)
{
	struct top_table table = {
	    .columns = columns, .n_columns = array_size(columns), .sorted_by = -1};
	const size_t n_shown = n < MAX_ROWS ? n : MAX_ROWS;

	for (size_t i = 0; i < n_shown; i++)
		fill(model, &groups[i], array_push(table.rows, table.n_rows, table.capacity));
	table.n_shown = table.n_rows;
	top_layout(&table, width);
	for (size_t i = 0; i <= n_shown; i++) {
		_cleanup_free_ char *line = top_table_line(&table, i ? &table.rows[i - 1] : NULL);
		fprintf(stream, "%s\n", line);
	}
	if (n > n_shown)
		fprintf(stream, "%zu more rows: -f folded, or -o FILE, has all.\n", n - n_shown);
	if (!groups[0].is_idle && groups[n - 1].is_idle)
		fputs("Idle threads come last.\n", stream);
	top_table_deinit(&table);
}

void waits_table_write(const struct options *options, const struct report_source *source, int width,
                       FILE *stream)
{
	const struct selection selection = options_selection(options);
	const struct profile *profile = source->part;
	struct top_own own = {0};
	size_t n, n_groups;
	_cleanup_free_ bool *selected = selection_apply(&selection, profile, source->modules,
	                                                source->symbols, options->syscalls);
	_cleanup_free_ struct item *items = find_items(source, selected, &n);
	_cleanup_free_ struct group *groups = find_groups(profile, items, n, &n_groups);

	top_own_update(&own, profile, source->modules, source->symbols);
	const struct top_model model = {.input = {
	                                    .profile = profile,
	                                    .modules = source->modules,
	                                    .symbols = source->symbols,
	                                    .own = &own,
	                                }};
	if (n_groups > 0)
		print(&model, groups, n_groups, width, stream);
	top_own_deinit(&own);
}

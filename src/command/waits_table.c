// SPDX-License-Identifier: MIT
#include "waits_table.h"

#include <stdlib.h>
#include <string.h>

#include "call_text.h"
#include "memory.h"
#include "options.h"
#include "profile.h"
#include "sample_kind.h"
#include "selection.h"
#include "text.h"
#include "top_layout.h"
#include "top_model.h"
#include "top_own.h"
#include "top_table.h"
#include "wait_kind.h"
#include "write_report.h"

enum { MAX_ROWS = 20, MAX_NAME_BYTES = 64 };

// Waits of the same stack for the same thing.
struct group {
	uint32_t sample; // the longest
	enum wait_kind kind;
	bool is_idle;
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

static int compare_stacks(const void *a_pointer, const void *b_pointer, void *context)
{
	const struct sample *samples = context;
	const struct sample *a = &samples[*(const uint32_t *)a_pointer];
	const struct sample *b = &samples[*(const uint32_t *)b_pointer];

	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	if (a->wait != b->wait)
		return a->wait < b->wait ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
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

// The groups of n samples; the caller frees.
static struct group *find_groups(const struct report_source *source, uint32_t *ids, size_t n,
                                 size_t *ret_count)
{
	const struct profile *profile = source->part;
	const struct sample *samples = profile->samples;
	struct group *groups = memory_alloc_zeroed(n + 1, sizeof(*groups));
	struct sample_kinds kinds;
	size_t count = 0;

	if (n > 0)
		qsort_r(ids, n, sizeof(*ids), compare_stacks, profile->samples);
	for (size_t i = 0; i < n; i++) {
		const struct sample *sample = &samples[ids[i]];
		const struct sample *last = i > 0 ? &samples[ids[i - 1]] : NULL;
		const bool is_new =
		    !last || last->stack != sample->stack || last->wait != sample->wait;
		count += is_new;
		add(profile, ids[i], is_new || last->thread != sample->thread, &groups[count - 1]);
	}
	sample_kinds_init(&kinds, profile, source->symbols);
	for (size_t i = 0; i < count; i++) {
		const struct sample *sample = &samples[groups[i].sample];
		groups[i].kind = sample_kind(&kinds, sample);
		groups[i].is_idle =
		    wait_kind_has_no_work(groups[i].kind, sample_wait(profile, sample));
	}
	sample_kinds_deinit(&kinds);
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
	return memory_printf("%s %d", name, thread->tid);
}

static void fill(const struct top_model *model, const struct group *group, struct top_row *row)
{
	const struct sample *sample = &model->input.profile->samples[group->sample];

	*row = (struct top_row){
	    .cells = {
	        duration_text(group->longest_ns),
	        memory_printf("%zu", group->n_waits),
	        duration_text(group->total_ns),
	        threads_text(model->input.profile, group),
	        memory_strdup(group->kind == WAIT_KIND_RUNNABLE ? "ready"
	                                                        : wait_kind_name(group->kind)),
	        group->kind == WAIT_KIND_RUNNABLE
	            ? memory_strdup("a CPU")
	            : top_wait_text(top_waits_for(model, sample->wait)),
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
	size_t n = 0, n_groups;
	_cleanup_free_ bool *selected = selection_apply(&selection, profile, source->modules,
	                                                source->symbols, options->syscalls);
	_cleanup_free_ uint32_t *ids = memory_alloc_zeroed(profile->n_samples + 1, sizeof(*ids));

	for (size_t i = 0; i < profile->n_samples; i++)
		if (selected[i])
			ids[n++] = (uint32_t)i;
	_cleanup_free_ struct group *groups = find_groups(source, ids, n, &n_groups);
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

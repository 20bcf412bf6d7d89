// SPDX-License-Identifier: MIT
#include "page.h"

#include <stdlib.h>
#include <string.h>

#include "frame_name.h"
#include "frame_table.h"
#include "memory.h"
#include "sample_kind.h"
#include "sample_work.h"
#include "timeline.h"
#include "writer.h"

// The state while a report is added: which places and frames of the page its samples and functions
// are.
struct adding {
	struct page *page;
	const struct report *report;
	struct frame_table table;
	uint32_t *frames; // the page's, by the table's function; UINT32_MAX: not yet known
	size_t n_frames, frames_capacity;
	struct place *places; // by sample
	struct sample_kinds kinds;
	struct sample_work *work;
};

struct place {
	uint32_t node, wait;
	uint8_t kind;
	bool known;
};

const char *page_kind_name(uint8_t kind)
{
	return kind == PAGE_KIND_CLIENT ? "client" : wait_kind_name((enum wait_kind)kind);
}

bool page_kind_is_idle(uint8_t kind)
{
	return kind == PAGE_KIND_CLIENT || wait_kind_has_no_work((enum wait_kind)kind, NULL);
}

// Returns the page's kind of the sample's time.
static uint8_t kind_of(const struct adding *adding, const struct sample *sample)
{
	const enum wait_kind kind = sample_kind(&adding->kinds, sample);
	const bool has_no_work = sample_has_no_work(adding->work, sample, kind);

	if (kind == WAIT_KIND_SOCKET && has_no_work)
		return PAGE_KIND_CLIENT;
	// A task waits for an answer, which another one reads.
	return kind == WAIT_KIND_CONDITION && !has_no_work ? WAIT_KIND_SOCKET : (uint8_t)kind;
}

enum weight_class page_class_of(uint8_t kind)
{
	return kind == WAIT_KIND_RUNNING    ? WEIGHT_RUNNING
	       : kind == WAIT_KIND_RUNNABLE ? WEIGHT_RUNNABLE
	                                    : WEIGHT_BLOCKED;
}

static uint32_t add_wait(struct page *page, const char *what, const char *descriptor,
                         const char *labels)
{
	const struct page_wait wait = {
	    .what = string_table_intern(&page->waits_text, what),
	    .descriptor = string_table_intern_clean(&page->waits_text, descriptor),
	    .labels = string_table_intern(&page->waits_text, labels),
	};

	return hash_intern(&page->wait_index, page->waits, page->n_waits, page->waits_capacity,
	                   wait, sizeof(wait));
}

void page_init(struct page *page)
{
	*page = (struct page){0};
	page_tree_init(&page->tree);
	add_wait(page, "", "", "");
}

void page_deinit(struct page *page)
{
	page_tree_deinit(&page->tree);
	string_table_deinit(&page->waits_text);
	string_table_deinit(&page->thread_names);
	hash_index_deinit(&page->wait_index);
	free(page->waits);
	free(page->threads);
	free(page->runs);
	free(page->unit);
	*page = (struct page){0};
}

static uint32_t wait_of(struct adding *adding, const struct sample *sample)
{
	const struct profile *profile = adding->report->profile;
	const struct wait *wait = sample->wait == WAIT_NONE ? NULL : &profile->waits[sample->wait];
	_cleanup_free_ char *what = wait ? frame_name_waits_in(wait) : NULL;
	_cleanup_free_ char *labels = frame_name_labels(profile, sample);

	return add_wait(adding->page, what ? what : "", wait ? frame_name_descriptor(wait) : "",
	                labels ? labels : "");
}

static uint32_t flags_of(const struct frame_function *function)
{
	const uint32_t own = function->own ? PAGE_OWN : 0;

	switch (function->kind) {
	case FRAME_INLINED:
		return PAGE_INLINED | own;
	case FRAME_KERNEL:
		return PAGE_KERNEL;
	case FRAME_END:
		return PAGE_END;
	default:
		return own;
	}
}

static uint32_t frame_of(struct adding *adding, uint32_t id)
{
	const struct frame_table *table = &adding->table;
	const uint32_t number = table->frames[id].function;
	const struct frame_function *function = &table->functions[number];
	struct page_tree *tree = &adding->page->tree;

	while (adding->n_frames <= number)
		*array_push(adding->frames, adding->n_frames, adding->frames_capacity) = UINT32_MAX;
	uint32_t *frame = &adding->frames[number];
	if (*frame == UINT32_MAX)
		*frame = page_tree_frame(
		    tree, &(struct page_frame){
		              .name = string_table_intern(
		                  &tree->names, frame_table_string(table, function->name)),
		              .file = string_table_intern(
		                  &tree->files, frame_table_string(table, function->file)),
		              .module = string_table_intern(
		                  &tree->modules, frame_table_string(table, function->module)),
		              .line = function->start_line,
		              .flags = flags_of(function),
		          });
	return *frame;
}

// Adds a root frame that the profiler itself names: a process or a thread.
static uint32_t add_root(struct page_tree *tree, uint32_t parent, const char *name)
{
	const struct page_frame frame = {
	    .name = string_table_intern_clean(&tree->names, name),
	    .file = string_table_intern(&tree->files, ""),
	    .module = string_table_intern(&tree->modules, ""),
	};
	return page_tree_child(tree, parent, page_tree_frame(tree, &frame));
}

// Returns the node below which all of the thread's stacks are.
static uint32_t root_of(struct adding *adding, uint32_t id)
{
	const struct report *report = adding->report;
	const struct thread *thread = &report->profile->threads[id];
	struct page_tree *tree = &adding->page->tree;
	uint32_t node = PAGE_ROOT;

	if (report->process_roots) {
		_cleanup_free_ char *name = frame_name_process(report->profile, thread);
		node = add_root(tree, node, name);
	}
	if (report->thread_roots)
		node = add_root(tree, node, frame_name_thread(thread));
	return node;
}

static uint32_t node_of(struct adding *adding, const struct sample *sample)
{
	struct page_tree *tree = &adding->page->tree;
	uint32_t node = root_of(adding, sample->thread);
	size_t n;
	const uint32_t *ids = frame_table_stack(&adding->table, sample, &n);

	for (size_t i = 0; i < n; i++)
		node = page_tree_child(tree, node, frame_of(adding, ids[i]));
	return node;
}

static const struct place *place_of(struct adding *adding, uint32_t id)
{
	const struct sample *sample = &adding->report->profile->samples[id];
	struct place *place = &adding->places[id];

	if (!place->known)
		*place = (struct place){
		    .node = node_of(adding, sample),
		    .wait = wait_of(adding, sample),
		    .kind = kind_of(adding, sample),
		    .known = true,
		};
	return place;
}

// True if the run continues the last one. A running thread is taken to be where it was seen last,
// though its stack may differ in a line.
static bool goes_on(const struct page_run *last, const struct page_run *run)
{
	return last->kind == WAIT_KIND_RUNNING && run->kind == WAIT_KIND_RUNNING &&
	       last->node == run->node && last->wait == run->wait && last->end_ns == run->start_ns;
}

// Returns what the time of a kind counts.
static double factor_of(const struct weights *weights, uint8_t kind)
{
	return weights->factor[page_class_of(kind)];
}

static const struct weights *weights_of(const struct adding *adding, uint32_t thread)
{
	static const struct weights none = {.factor = {1, 1, 1}};

	return adding->report->weights ? &adding->report->weights[thread] : &none;
}

static void add_run(struct adding *adding, const struct span *span, size_t first_run)
{
	const struct weights *weights = weights_of(adding, span->thread);
	struct page *page = adding->page;
	const int64_t start_ns = adding->report->profile->start_ns;
	const struct place *place = place_of(adding, span->sample);
	const int64_t last_end_ns =
	    page->n_runs > first_run ? page->runs[page->n_runs - 1].end_ns : 0;
	struct page_run run = {
	    .start_ns = span->start_ns - start_ns,
	    .end_ns = span->end_ns - start_ns,
	    .node = place->node,
	    .wait = place->wait,
	    .kind = place->kind,
	};

	// Runs of a damaged recording may overlap.
	if (run.start_ns < last_end_ns)
		run.start_ns = last_end_ns;
	if (run.end_ns <= run.start_ns)
		return;
	page->tree.nodes[run.node].self_ns +=
	    (int64_t)((double)(run.end_ns - run.start_ns) * factor_of(weights, run.kind));
	page->end_ns = run.end_ns > page->end_ns ? run.end_ns : page->end_ns;
	if (page->n_runs > first_run && goes_on(&page->runs[page->n_runs - 1], &run))
		page->runs[page->n_runs - 1].end_ns = run.end_ns;
	else
		*array_push(page->runs, page->n_runs, page->runs_capacity) = run;
}

// Returns the node of the time that no tick has seen.
static uint32_t unseen_node(struct adding *adding, uint32_t thread, const struct weights *weights)
{
	struct page_tree *tree = &adding->page->tree;
	_cleanup_free_ char *name = frame_name_truncated(STACK_UNSEEN);
	int64_t unseen_ns = 0;

	for (int class = 0; class < N_WEIGHT_CLASSES; class ++)
		unseen_ns += weights->unseen_ns[class];
	if (unseen_ns == 0)
		return PAGE_ROOT;
	const uint32_t node = add_root(tree, root_of(adding, thread), name);
	tree->nodes[node].self_ns += unseen_ns;
	return node;
}

static void add_thread(struct adding *adding, const struct thread_spans *spans, bool is_base)
{
	struct page *page = adding->page;
	const struct profile *profile = adding->report->profile;
	const struct thread *thread = &profile->threads[spans->thread];
	const size_t first_run = page->n_runs;

	for (size_t i = 0; i < spans->count; i++)
		add_run(adding, &spans->spans[i], first_run);
	const size_t n_runs = page->n_runs - first_run;
	if (n_runs == 0)
		return;
	_cleanup_free_ char *name = frame_name_track(profile, spans);
	const struct weights *weights = weights_of(adding, spans->thread);
	*array_push(page->threads, page->n_threads, page->threads_capacity) = (struct page_thread){
	    .tid = thread->tid,
	    .pid = thread->pid,
	    .name = string_table_intern_clean(&page->thread_names, name),
	    .is_task = thread->is_task,
	    .birth_ns = thread->first_ns - profile->start_ns,
	    .death_ns = thread->ended ? thread->last_ns - profile->start_ns : -1,
	    .first_run = first_run,
	    .n_runs = n_runs,
	    .slept = n_runs == 1 && page_kind_is_idle(page->runs[first_run].kind),
	    .is_base = is_base,
	    .weights = *weights,
	    .unseen_node = unseen_node(adding, spans->thread, weights),
	};
}

void page_add(struct page *page, const struct report *report, bool is_base)
{
	struct adding adding = {.page = page, .report = report};
	size_t n_threads;
	_cleanup_free_ struct thread_spans *threads =
	    timeline_by_thread(report->timeline, &n_threads);

	adding.places = memory_alloc_zeroed(report->profile->n_samples + 1, sizeof(*adding.places));
	frame_table_init(&adding.table, report);
	sample_kinds_init(&adding.kinds, report->profile, report->symbols);
	adding.work = sample_work_create(report->profile, report->modules, report->symbols);
	for (size_t i = 0; i < n_threads; i++)
		add_thread(&adding, &threads[i], is_base);
	sample_work_destroy(adding.work);
	sample_kinds_deinit(&adding.kinds);
	frame_table_deinit(&adding.table);
	free(adding.frames);
	free(adding.places);
}

// Sums without time: each place in the tree has one run for all of its own sum, one after the
// other, so that the page is not larger than its tree.

void page_add_self(struct page *page, uint32_t node, int64_t count, int64_t scale_ns)
{
	const int64_t room_ns = PAGE_MAX_SUM_NS - page->end_ns;
	const int64_t ns = count > room_ns / scale_ns ? room_ns : count * scale_ns;

	page->tree.nodes[node].self_ns += ns;
	page->end_ns += ns;
}

void page_add_self_runs(struct page *page)
{
	int64_t at_ns = 0;

	for (size_t i = 0; i < page->tree.n_nodes; i++) {
		const int64_t ns = page->tree.nodes[i].self_ns;
		if (ns == 0)
			continue;
		*array_push(page->runs, page->n_runs, page->runs_capacity) =
		    (struct page_run){.start_ns = at_ns, .end_ns = at_ns + ns, .node = (uint32_t)i};
		at_ns += ns;
	}
	if (page->n_runs > 0)
		*array_push(page->threads, page->n_threads, page->threads_capacity) =
		    (struct page_thread){
		        .name = string_table_intern(&page->thread_names, "samples"),
		        .death_ns = -1,
		        .n_runs = page->n_runs,
		        .weights.factor = {1, 1, 1},
		    };
}

uint32_t page_add_cut(struct page *page, uint32_t node, size_t max_frames)
{
	struct page_tree *tree = &page->tree;
	_cleanup_free_ char *name = memory_printf("[truncated: more than %zu frames]", max_frames);
	const struct page_frame frame = {
	    .name = string_table_intern(&tree->names, name),
	    .file = string_table_intern(&tree->files, ""),
	    .module = string_table_intern(&tree->modules, ""),
	    .flags = PAGE_END,
	};

	return page_tree_child(tree, node, page_tree_frame(tree, &frame));
}

// The page of a long recording has more runs than a browser can hold: short runs that lie close
// together become one run for each place, kind and wait. Sums stay exact; only the order within
// such a stretch of time is lost.

static int compare_runs(const void *a_pointer, const void *b_pointer)
{
	const struct page_run *a = a_pointer, *b = b_pointer;

	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return (a->wait > b->wait) - (a->wait < b->wait);
}

// Puts the runs of one stretch together, leaving one run of each sort, one after the other. Returns
// how many are left.
static size_t put_together(struct page_run *runs, size_t n)
{
	int64_t at_ns = n > 0 ? runs[0].start_ns : 0;
	size_t kept = 0;

	qsort(runs, n, sizeof(*runs), compare_runs);
	for (size_t i = 0; i < n; i++) {
		const int64_t length_ns = runs[i].end_ns - runs[i].start_ns;
		if (kept == 0 || compare_runs(&runs[kept - 1], &runs[i]) != 0) {
			runs[kept] = runs[i];
			runs[kept].start_ns = runs[kept].end_ns = at_ns;
			kept++;
		}
		at_ns += length_ns;
		runs[kept - 1].end_ns = at_ns;
	}
	return kept;
}

static bool is_short(const struct page_run *run, int64_t stretch_ns)
{
	return run->end_ns - run->start_ns < stretch_ns;
}

// Returns the end of the short runs from `first` on that begin in the same stretch.
static size_t end_of_stretch(const struct page_run *runs, size_t first, size_t n,
                             int64_t stretch_ns)
{
	const int64_t stretch = runs[first].start_ns / stretch_ns;
	size_t end = first;

	while (end < n && is_short(&runs[end], stretch_ns) &&
	       runs[end].start_ns / stretch_ns == stretch)
		end++;
	return end > first ? end : first + 1;
}

static void bound_thread(struct page *page, struct page_thread *thread, int64_t stretch_ns,
                         size_t *n_kept)
{
	struct page_run *runs = page->runs + thread->first_run;
	const size_t n = thread->n_runs;

	thread->first_run = *n_kept;
	for (size_t i = 0, end; i < n; i = end) {
		end = end_of_stretch(runs, i, n, stretch_ns);
		const size_t left = put_together(runs + i, end - i);
		memmove(page->runs + *n_kept, runs + i, left * sizeof(*runs));
		*n_kept += left;
	}
	thread->n_runs = *n_kept - thread->first_run;
}

void page_bound_runs(struct page *page, size_t max_runs)
{
	int64_t stretch_ns = PAGE_UNIT_NS;

	while (page->n_runs > max_runs && stretch_ns <= page->end_ns) {
		size_t n_kept = 0;
		stretch_ns *= 2;
		for (size_t i = 0; i < page->n_threads; i++)
			bound_thread(page, &page->threads[i], stretch_ns, &n_kept);
		page->n_runs = n_kept;
		page->stretch_ns = stretch_ns;
	}
}

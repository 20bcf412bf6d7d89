// SPDX-License-Identifier: MIT
#include "page_sections.h"

#include <string.h>

#include "gzip.h"
#include "memory.h"
#include "page.h"
#include "protobuf.h"

_Static_assert((int)N_PAGE_KINDS <= PAGE_MAX_KINDS, "kinds fit beside a wait");

// Keeps times within the 32 bits, with a sign, in which the script counts.
#define MAX_UNITS ((int64_t)1 << 31)

#define MILLION 1e6

int64_t page_unit_ns(const struct page *page)
{
	int64_t unit_ns = PAGE_UNIT_NS;

	while (page->end_ns / unit_ns >= MAX_UNITS - 1)
		unit_ns *= 2;
	return unit_ns;
}

struct sections {
	const struct page *page;
	struct gzip gzip;
	struct protobuf columns; // the section that is being built
	int64_t unit_ns;
};

static void put_header(struct sections *sections, enum page_section id, size_t size)
{
	uint8_t header[8];

	for (int i = 0; i < 4; i++) {
		header[i] = (uint32_t)id >> 8 * i;
		header[4 + i] = (uint32_t)size >> 8 * i;
	}
	gzip_write(&sections->gzip, header, sizeof(header));
}

static void put_strings(struct sections *sections, enum page_section id,
                        const struct string_table *strings)
{
	size_t size = 0;

	for (size_t i = 0; i < strings->count; i++)
		size += strlen(strings->items[i]) + 1;
	put_header(sections, id, size);
	for (size_t i = 0; i < strings->count; i++)
		gzip_write(&sections->gzip, strings->items[i], strlen(strings->items[i]) + 1);
}

static void put_columns(struct sections *sections, enum page_section id)
{
	put_header(sections, id, sections->columns.size);
	gzip_write(&sections->gzip, sections->columns.bytes, sections->columns.size);
	protobuf_clear(&sections->columns);
}

// Writes a column: one number for each item of an array.
#define COLUMN(item, items, n, value)                                                              \
	for (size_t i_ = 0; i_ < (n); i_++) {                                                      \
		const __typeof__(*(items)) *item = &(items)[i_];                                   \
		protobuf_varint(&sections->columns, (uint64_t)(value));                            \
	}

static void put_frames(struct sections *sections)
{
	const struct page_tree *tree = &sections->page->tree;

	protobuf_varint(&sections->columns, tree->n_frames);
	COLUMN(frame, tree->frames, tree->n_frames, frame->name);
	COLUMN(frame, tree->frames, tree->n_frames, frame->file);
	COLUMN(frame, tree->frames, tree->n_frames, frame->module);
	COLUMN(frame, tree->frames, tree->n_frames, frame->line);
	COLUMN(frame, tree->frames, tree->n_frames, frame->flags);
	COLUMN(frame, tree->frames, tree->n_frames, frame->short_name);
	put_columns(sections, PAGE_FRAMES);
}

static void put_nodes(struct sections *sections, const uint32_t *order)
{
	const struct page_tree *tree = &sections->page->tree;
	_cleanup_free_ uint32_t *depths = memory_alloc_zeroed(tree->n_nodes, sizeof(*depths));
	uint32_t last_depth = 0;

	protobuf_varint(&sections->columns, tree->n_nodes);
	protobuf_varint(&sections->columns, 0);
	for (size_t i = 1; i < tree->n_nodes; i++) {
		const uint32_t node = order[i];
		depths[node] = depths[tree->nodes[node].parent] + 1;
		protobuf_varint(&sections->columns, last_depth + 1 - depths[node]);
		last_depth = depths[node];
	}
	const size_t levels_size = sections->columns.size;
	COLUMN(node, order, tree->n_nodes, tree->nodes[*node].frame);
	put_header(sections, PAGE_NODES, sections->columns.size);
	gzip_write_runs(&sections->gzip, sections->columns.bytes, levels_size);
	gzip_write(&sections->gzip, sections->columns.bytes + levels_size,
	           sections->columns.size - levels_size);
	protobuf_clear(&sections->columns);
}

static int64_t to_units(const struct sections *sections, int64_t ns)
{
	return ns <= 0 ? 0 : (ns + sections->unit_ns / 2) / sections->unit_ns;
}

static uint32_t thread_flags(const struct page_thread *thread)
{
	return (thread->slept ? PAGE_THREAD_SLEPT : 0) | (thread->is_base ? PAGE_THREAD_BASE : 0) |
	       (thread->is_task ? PAGE_THREAD_TASK : 0);
}

static void put_threads(struct sections *sections)
{
	const struct page_thread *threads = sections->page->threads;
	const size_t n = sections->page->n_threads;

	protobuf_varint(&sections->columns, n);
	COLUMN(thread, threads, n, thread->tid);
	COLUMN(thread, threads, n, thread->pid);
	COLUMN(thread, threads, n, to_units(sections, thread->birth_ns));
	COLUMN(thread, threads, n,
	       thread->death_ns < 0 ? 0 : to_units(sections, thread->death_ns) + 1);
	COLUMN(thread, threads, n, thread->name);
	COLUMN(thread, threads, n, thread->n_runs);
	COLUMN(thread, threads, n, thread_flags(thread));
	put_columns(sections, PAGE_THREADS);
}

static void put_waits(struct sections *sections)
{
	const struct page *page = sections->page;

	protobuf_varint(&sections->columns, page->n_waits);
	COLUMN(wait, page->waits, page->n_waits, wait->what);
	COLUMN(wait, page->waits, page->n_waits, wait->descriptor);
	COLUMN(wait, page->waits, page->n_waits, wait->labels);
	put_columns(sections, PAGE_WAITS);
}

static void put_gaps(struct sections *sections)
{
	const struct page *page = sections->page;

	for (size_t i = 0; i < page->n_threads; i++) {
		const struct page_run *runs = page->runs + page->threads[i].first_run;
		int64_t last_end = 0;
		for (size_t k = 0; k < page->threads[i].n_runs; k++) {
			const int64_t start = to_units(sections, runs[k].start_ns);
			protobuf_varint(&sections->columns, (uint64_t)(start - last_end));
			last_end = to_units(sections, runs[k].end_ns);
		}
	}
}

static void put_runs(struct sections *sections, const uint32_t *order)
{
	const struct page *page = sections->page;
	const size_t n = page->n_runs, n_nodes = page->tree.n_nodes;
	_cleanup_free_ uint32_t *ranks = memory_alloc_zeroed(n_nodes, sizeof(*ranks));

	for (size_t i = 0; i < n_nodes; i++)
		ranks[order[i]] = i;
	protobuf_varint(&sections->columns, n);
	put_gaps(sections);
	// Rounds the bounds, not the lengths, so that sums do not drift.
	COLUMN(run, page->runs, n,
	       to_units(sections, run->end_ns) - to_units(sections, run->start_ns));
	COLUMN(run, page->runs, n, ranks[run->node]);
	COLUMN(run, page->runs, n, run->kind + PAGE_MAX_KINDS * (uint64_t)run->wait);
	put_columns(sections, PAGE_RUNS);
}

static bool has_weights(const struct page_thread *thread)
{
	for (int class = 0; class < N_WEIGHT_CLASSES; class ++)
		if (thread->weights.factor[class] != 1)
			return true;
	return thread->unseen_node != PAGE_ROOT;
}

static void put_weights(struct sections *sections, const uint32_t *order)
{
	const struct page *page = sections->page;
	const size_t n_nodes = page->tree.n_nodes;
	_cleanup_free_ uint32_t *ranks = memory_alloc_zeroed(n_nodes, sizeof(*ranks));
	_cleanup_free_ size_t *threads = memory_alloc_zeroed(page->n_threads + 1, sizeof(*threads));
	size_t n = 0;

	for (size_t i = 0; i < n_nodes; i++)
		ranks[order[i]] = i;
	for (size_t i = 0; i < page->n_threads; i++)
		if (has_weights(&page->threads[i]))
			threads[n++] = i;
	protobuf_varint(&sections->columns, n);
	COLUMN(i, threads, n, *i);
	for (int class = 0; class < N_WEIGHT_CLASSES; class ++)
		COLUMN(i, threads, n, page->threads[*i].weights.factor[class] * MILLION + 0.5);
	for (int class = 0; class < N_WEIGHT_CLASSES; class ++)
		COLUMN(i, threads, n,
		       to_units(sections, page->threads[*i].weights.unseen_ns[class]));
	COLUMN(i, threads, n, ranks[page->threads[*i].unseen_node]);
	put_columns(sections, PAGE_WEIGHTS);
}

struct error *page_sections_write(const struct page *page, const uint32_t *order, const char *meta,
                                  FILE *stream)
{
	struct sections sections = {.page = page, .unit_ns = page_unit_ns(page)};
	struct error *error = gzip_init(&sections.gzip, stream);

	if (error)
		return error;
	put_header(&sections, PAGE_META, strlen(meta));
	gzip_write(&sections.gzip, meta, strlen(meta));
	put_strings(&sections, PAGE_NAMES, &page->tree.names);
	put_strings(&sections, PAGE_FILES, &page->tree.files);
	put_strings(&sections, PAGE_MODULES, &page->tree.modules);
	put_frames(&sections);
	put_nodes(&sections, order);
	put_strings(&sections, PAGE_THREAD_NAMES, &page->thread_names);
	put_threads(&sections);
	put_strings(&sections, PAGE_WAIT_TEXTS, &page->waits_text);
	put_waits(&sections);
	put_runs(&sections, order);
	put_weights(&sections, order);
	gzip_finish(&sections.gzip);
	gzip_deinit(&sections.gzip);
	protobuf_deinit(&sections.columns);
	return NULL;
}

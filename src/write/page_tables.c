// SPDX-License-Identifier: MIT
#include "page_tables.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "memory.h"
#include "page.h"

enum { MAX_ROWS = 30, MAX_NAME_BYTES = 300 };

void page_put_text(FILE *stream, const char *text, size_t max_bytes)
{
	for (size_t i = 0; text[i]; i++) {
		// Cut only between characters of UTF-8.
		if (i >= max_bytes && ((unsigned char)text[i] & 0xc0) != 0x80) {
			fputs("...", stream);
			return;
		}
		switch (text[i]) {
		case '<':
			fputs("&lt;", stream);
			break;
		case '>':
			fputs("&gt;", stream);
			break;
		case '&':
			fputs("&amp;", stream);
			break;
		case '"':
			fputs("&quot;", stream);
			break;
		case '\'':
			fputs("&#39;", stream);
			break;
		default:
			putc_unlocked(text[i], stream);
		}
	}
}

struct row {
	uint32_t name;
	int64_t self_ns, total_ns;
	uint32_t counted_to; // total_ns includes the nodes before this place in the order
};

static int compare(const void *a_pointer, const void *b_pointer)
{
	const struct row *a = a_pointer, *b = b_pointer;

	if (a->self_ns != b->self_ns)
		return a->self_ns > b->self_ns ? -1 : 1;
	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return (a->name > b->name) - (a->name < b->name);
}

// Counts functions by name. A call below one of the same name is not counted twice.
static struct row *count_functions(const struct page_tree *tree, const uint32_t *order)
{
	struct row *rows = memory_alloc_zeroed(tree->names.count, sizeof(*rows));
	_cleanup_free_ uint32_t *ends = memory_alloc_zeroed(tree->n_nodes, sizeof(*ends));

	for (size_t i = 0; i < tree->names.count; i++)
		rows[i].name = i;
	// ends[node]: the place behind the node's last descendant in the order.
	for (size_t i = tree->n_nodes; i-- > 1;) {
		const uint32_t node = order[i], parent = tree->nodes[node].parent;
		if (ends[node] == 0)
			ends[node] = i + 1;
		if (ends[parent] < ends[node])
			ends[parent] = ends[node];
	}
	for (size_t i = 1; i < tree->n_nodes; i++) {
		const struct page_node *node = &tree->nodes[order[i]];
		struct row *row = &rows[tree->frames[node->frame].name];
		row->self_ns += node->self_ns;
		if (i < row->counted_to)
			continue;
		row->total_ns += node->total_ns;
		row->counted_to = ends[order[i]];
	}
	qsort(rows, tree->names.count, sizeof(*rows), compare);
	return rows;
}

static void put_row(const struct page *page, FILE *stream, const char *name, int64_t first_ns,
                    int64_t second_ns)
{
	const int64_t one_ns = page->count_ns ? page->count_ns : NS_PER_SECOND;
	const int digits = one_ns == NS_PER_SECOND ? 3 : 0;

	fprintf(stream, "<tr><td>%.*f<td>%.*f<td>", digits, (double)first_ns / (double)one_ns,
	        digits, (double)second_ns / (double)one_ns);
	page_put_text(stream, name, MAX_NAME_BYTES);
	fputs("\n", stream);
}

static void put_functions(const struct page *page, const uint32_t *order, FILE *stream)
{
	_cleanup_free_ struct row *rows = count_functions(&page->tree, order);

	const char *unit = !page->count_ns ? "seconds" : page->unit ?: "samples";

	fputs("<table><caption>Functions, in ", stream);
	page_put_text(stream, unit, MAX_NAME_BYTES);
	fputs("</caption>\n<tr><th>self<th>total<th>function\n", stream);
	for (size_t i = 0; i < page->tree.names.count && i < MAX_ROWS; i++)
		if (rows[i].total_ns > 0)
			put_row(page, stream, page->tree.names.items[rows[i].name], rows[i].self_ns,
			        rows[i].total_ns);
	fputs("</table>\n", stream);
}

static struct row count_thread(const struct page *page, const struct page_thread *thread)
{
	struct row row = {.name = (uint32_t)(thread - page->threads)};

	for (size_t i = 0; i < thread->n_runs; i++) {
		const struct page_run *run = &page->runs[thread->first_run + i];
		const enum weight_class class = page_class_of(run->kind);
		const double ns =
		    (double)(run->end_ns - run->start_ns) * thread->weights.factor[class];
		row.total_ns += (int64_t)ns;
		row.self_ns += class == WEIGHT_RUNNING ? (int64_t)ns : 0;
	}
	for (int class = 0; class < N_WEIGHT_CLASSES; class ++)
		row.total_ns += thread->weights.unseen_ns[class];
	row.self_ns += thread->weights.unseen_ns[WEIGHT_RUNNING];
	return row;
}

static void put_threads(const struct page *page, FILE *stream)
{
	_cleanup_free_ struct row *rows = memory_alloc_zeroed(page->n_threads + 1, sizeof(*rows));

	for (size_t i = 0; i < page->n_threads; i++)
		rows[i] = count_thread(page, &page->threads[i]);
	qsort(rows, page->n_threads, sizeof(*rows), compare);
	fputs("<table><caption>Threads</caption>\n<tr><th>running, s<th>in all, s<th>thread\n",
	      stream);
	for (size_t i = 0; i < page->n_threads && i < MAX_ROWS; i++) {
		const struct page_thread *thread = &page->threads[rows[i].name];
		const char *text = page->thread_names.items[thread->name];
		_cleanup_free_ char *name = thread->is_task
		                                ? memory_strdup(text)
		                                : memory_printf("%s %d", text, thread->tid);
		put_row(page, stream, name, rows[i].self_ns, rows[i].total_ns);
	}
	fputs("</table>\n", stream);
}

void page_tables_write(const struct page *page, const uint32_t *order, FILE *stream)
{
	put_functions(page, order, stream);
	if (!page->count_ns)
		put_threads(page, stream);
}

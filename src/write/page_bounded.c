// SPDX-License-Identifier: MIT
// The page of a long recording has more runs than a browser can hold: short runs that lie close
// together become one run for each place, kind and wait. Sums stay exact; only the order within
// such a stretch of time is lost.
#include <stdlib.h>
#include <string.h>

#include "page.h"

static int compare(const void *a_pointer, const void *b_pointer)
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

	qsort(runs, n, sizeof(*runs), compare);
	for (size_t i = 0; i < n; i++) {
		const int64_t length_ns = runs[i].end_ns - runs[i].start_ns;
		if (kept == 0 || compare(&runs[kept - 1], &runs[i]) != 0) {
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

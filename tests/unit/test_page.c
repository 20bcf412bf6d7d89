// SPDX-License-Identifier: MIT
// A page of more runs than a browser can hold.
#include <string.h>

#include "memory.h"
#include "page.h"
#include "unit.h"

enum { N_THREADS = 3, N_RUNS = 20000, N_NODES = 5, N_KINDS = 3, N_WAITS = 4, MAX_RUNS = 6000 };
enum { LONG_EACH = 1000, LONG_NS = 500000000 };

struct sums {
	int64_t ns[N_THREADS][N_NODES][N_KINDS][N_WAITS];
};

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

static void fill(struct page *page)
{
	uint32_t random = 1;

	for (int t = 0; t < N_THREADS; t++) {
		int64_t at_ns = 0;
		*array_push(page->threads, page->n_threads, page->threads_capacity) =
		    (struct page_thread){.first_run = page->n_runs, .n_runs = N_RUNS};
		for (int i = 0; i < N_RUNS; i++) {
			const int64_t length_ns =
			    i % LONG_EACH == 0 ? LONG_NS : 10000 + next_random(&random) % 90000;
			at_ns += next_random(&random) % 5 == 0 ? 30000 : 0; // not watched
			*array_push(page->runs, page->n_runs, page->runs_capacity) =
			    (struct page_run){
			        .start_ns = at_ns,
			        .end_ns = at_ns + length_ns,
			        .node = next_random(&random) % N_NODES,
			        .wait = next_random(&random) % N_WAITS,
			        .kind = (uint8_t)(next_random(&random) % N_KINDS),
			    };
			at_ns += length_ns;
		}
		page->end_ns = at_ns > page->end_ns ? at_ns : page->end_ns;
	}
}

// Also that the runs of a thread follow each other. Returns how many are as long as the long ones.
static size_t sum_up(const struct page *page, struct sums *ret)
{
	size_t n_long = 0, next = 0;

	memset(ret, 0, sizeof(*ret));
	for (size_t t = 0; t < page->n_threads; t++) {
		int64_t last_ns = 0;
		assert_int_equal(page->threads[t].first_run, next);
		next += page->threads[t].n_runs;
		for (size_t i = page->threads[t].first_run; i < next; i++) {
			const struct page_run *run = &page->runs[i];
			assert_true(run->start_ns >= last_ns && run->end_ns > run->start_ns);
			last_ns = run->end_ns;
			ret->ns[t][run->node][run->kind][run->wait] += run->end_ns - run->start_ns;
			n_long += run->end_ns - run->start_ns == LONG_NS;
		}
		assert_true(last_ns <= page->end_ns);
	}
	assert_int_equal(next, page->n_runs);
	return n_long;
}

static void test_bounded(void **state)
{
	_cleanup_free_ struct sums *before = memory_alloc(sizeof(*before));
	_cleanup_free_ struct sums *after = memory_alloc(sizeof(*after));
	struct page page;

	(void)state;
	page_init(&page);
	fill(&page);
	const size_t n_long = sum_up(&page, before);
	assert_int_equal(n_long, N_THREADS * N_RUNS / LONG_EACH);
	page_bound_runs(&page, N_THREADS * N_RUNS);
	assert_int_equal(page.stretch_ns, 0);
	assert_int_equal(page.n_runs, N_THREADS * N_RUNS);
	page_bound_runs(&page, MAX_RUNS);
	assert_true(page.n_runs <= MAX_RUNS && page.stretch_ns > 0);
	assert_true(page.stretch_ns <= LONG_NS);
	assert_int_equal(sum_up(&page, after), n_long);
	assert_memory_equal(before, after, sizeof(*before));
	// As few as there are sorts of them, and no more is tried.
	page_bound_runs(&page, 1);
	assert_true(page.n_runs <= N_THREADS * N_NODES * N_KINDS * N_WAITS);
	sum_up(&page, after);
	assert_memory_equal(before, after, sizeof(*before));
	page_deinit(&page);
}

static int64_t self_of(struct page *page, const char *a, const char *b, const char *c)
{
	const char *const names[] = {a, b, c};
	uint32_t node = PAGE_ROOT;

	for (int i = 0; i < 3; i++) {
		const struct page_frame frame = {
		    .name = string_table_intern(&page->tree.names, names[i])};
		node = page_tree_child(&page->tree, node, page_tree_frame(&page->tree, &frame));
	}
	return page->tree.nodes[node].self_ns;
}

static void test_folded(void **state)
{
	const char *const pieces[] = {"a;b;c 1\nf;b;c 2\n", "a;e;c 4\n", "a;b;c 8\n", "no stack\n",
	                              "a;b;c;d 32\nf;b;a 16"};
	struct page_folded folded;
	struct page page;
	char text[64];

	(void)state;
	page_init(&page);
	page_folded_begin(&folded, &page);
	for (size_t i = 0; i < array_size(pieces); i++) {
		strcpy(text, pieces[i]); // over the one before
		page_folded_add(&folded, text, strlen(text));
	}
	assert_int_equal(page_folded_end(&folded), 1);
	assert_int_equal(page.tree.n_nodes, 1 + 3 + 3 + 2 + 1 + 1);
	assert_int_equal(page.tree.n_frames, 1 + 6);
	// Most nodes have one child, and cost the index nothing.
	assert_int_equal(page.tree.node_index.count, 3);
	assert_int_equal(page.end_ns, 63 * PAGE_UNIT_NS);
	assert_int_equal(self_of(&page, "a", "b", "c"), 9 * PAGE_UNIT_NS);
	assert_int_equal(self_of(&page, "a", "e", "c"), 4 * PAGE_UNIT_NS);
	assert_int_equal(self_of(&page, "f", "b", "c"), 2 * PAGE_UNIT_NS);
	assert_int_equal(self_of(&page, "f", "b", "a"), 16 * PAGE_UNIT_NS);
	assert_int_equal(page.tree.n_nodes, 1 + 3 + 3 + 2 + 1 + 1);
	page_deinit(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bounded),
	    cmocka_unit_test(test_folded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

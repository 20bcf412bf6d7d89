// SPDX-License-Identifier: MIT
// Rows that keep their places for a while.
#include "clock.h"
#include "memory.h"
#include "top_ui.h"
#include "top_table.h"
#include "unit.h"

enum { MAX_ROWS = 4, SORTS = 7 };

// The order of the rows with these ids, a digit each, after the time.
static void check(struct top_order *order, const char *ids, int64_t now_ns, uint64_t sorts,
                  const char *expected)
{
	struct top_row rows[MAX_ROWS] = {0};
	struct top_table table = {.rows = rows};
	char found[MAX_ROWS + 1] = "";

	for (const char *id = ids; *id; id++)
		rows[table.n_shown++].id = (uint64_t)*id;
	top_order_keep(order, &table, now_ns, sorts);
	for (size_t i = 0; i < table.n_shown; i++)
		found[i] = (char)rows[i].id;
	assert_string_equal(found, expected);
}

static void test_kept(void **state)
{
	struct top_order order = {0};

	(void)state;
	check(&order, "123", NS_PER_SECOND, SORTS, "123");
	check(&order, "312", 2 * NS_PER_SECOND, SORTS, "123");
	// One is new, one is gone.
	check(&order, "4321", 3 * NS_PER_SECOND, SORTS, "1234");
	check(&order, "431", 3 * NS_PER_SECOND, SORTS, "134");
	check(&order, "", 3 * NS_PER_SECOND, SORTS, "");
	check(&order, "321", 3 * NS_PER_SECOND, SORTS, "321");
	// After a while, by another column, and back in time.
	check(&order, "132", 6 * NS_PER_SECOND, SORTS, "132");
	check(&order, "213", 7 * NS_PER_SECOND, SORTS + 1, "213");
	check(&order, "123", 6 * NS_PER_SECOND, SORTS + 1, "123");
	// One id twice.
	check(&order, "1231", 7 * NS_PER_SECOND, SORTS + 1, "1231");
	top_order_deinit(&order);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_kept)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

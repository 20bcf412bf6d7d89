// SPDX-License-Identifier: MIT
#include "top_order.h"

#include <stdlib.h>

#include "clock.h"
#include "memory.h"
#include "top_table.h"

#define KEPT_NS (3 * NS_PER_SECOND)

struct place {
	uint64_t id;
	size_t at; // among the rows
};

void top_order_deinit(struct top_order *order)
{
	free(order->ids);
	*order = (struct top_order){0};
}

static void remember_order(struct top_order *order, const struct top_table *table, int64_t now_ns,
                           uint64_t sorts)
{
	order->n = 0;
	for (size_t i = 0; i < table->n_shown; i++)
		*array_push(order->ids, order->n, order->capacity) = table->rows[i].id;
	order->at_ns = now_ns;
	order->sorts = sorts;
}

static int compare(const void *a_pointer, const void *b_pointer)
{
	const struct place *a = a_pointer, *b = b_pointer;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

// Where the row of that id is now; NULL: it is gone.
static const struct place *find(const struct place *places, size_t n, uint64_t id)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (places[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && places[low].id == id ? &places[low] : NULL;
}

void top_order_keep(struct top_order *order, struct top_table *table, int64_t now_ns,
                    uint64_t sorts)
{
	const size_t n = table->n_shown;

	if (n == 0 || order->n == 0 || order->sorts != sorts || now_ns < order->at_ns ||
	    now_ns - order->at_ns >= KEPT_NS) {
		remember_order(order, table, now_ns, sorts);
		return;
	}
	_cleanup_free_ struct place *places = memory_alloc_zeroed(n, sizeof(*places));
	_cleanup_free_ struct top_row *rows = memory_alloc_zeroed(n, sizeof(*rows));
	_cleanup_free_ bool *placed = memory_alloc_zeroed(n, sizeof(*placed));
	size_t n_placed = 0;
	for (size_t i = 0; i < n; i++)
		places[i] = (struct place){table->rows[i].id, i};
	qsort(places, n, sizeof(*places), compare);
	for (size_t i = 0; i < order->n; i++) {
		const struct place *place = find(places, n, order->ids[i]);
		if (!place || placed[place->at])
			continue;
		placed[place->at] = true;
		rows[n_placed++] = table->rows[place->at];
	}
	for (size_t i = 0; i < n; i++)
		if (!placed[i])
			rows[n_placed++] = table->rows[i];
	for (size_t i = 0; i < n; i++)
		table->rows[i] = rows[i];
}

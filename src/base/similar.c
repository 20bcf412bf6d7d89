// SPDX-License-Identifier: MIT
#include "similar.h"

#include "order.h"

#include <string.h>

enum { MAX_BYTES = 32, SHORT_NAME = 5 };

// The optimal string alignment distance, by rows: `rows[i % 3][j]` is that of a's first i
// characters and b's first j.
static size_t find_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	size_t rows[3][MAX_BYTES + 1];

	for (size_t i = 0; i <= a_length; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i + 2) % 3], *above_that = rows[(i + 1) % 3];
		for (size_t j = 0; j <= b_length; j++) {
			if (i == 0 || j == 0) {
				row[j] = i + j;
				continue;
			}
			const size_t replaced = above[j - 1] + (a[i - 1] != b[j - 1]);
			row[j] = order_min(replaced, order_min(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = order_min(row[j], above_that[j - 2] + 1);
		}
	}
	return rows[a_length % 3][b_length];
}

void similar_add(struct similar *similar, const char *name)
{
	const size_t word_length = strlen(similar->word), name_length = strlen(name);

	if (word_length > MAX_BYTES || name_length > MAX_BYTES)
		return;
	const size_t distance = find_distance(similar->word, word_length, name, name_length);
	const size_t limit = order_min(word_length, name_length) < SHORT_NAME ? 1 : 2;
	if (distance > limit || (similar->best && distance >= similar->distance))
		return;
	similar->best = name;
	similar->distance = distance;
}

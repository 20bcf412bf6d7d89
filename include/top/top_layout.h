// SPDX-License-Identifier: MIT
// top_layout: gives a table's columns their widths, and makes lines of its rows.
#pragma once

struct top_row;
struct top_table;

// Sets table->widths for a terminal of that width, 0: there is none, so that nothing is cut.
void top_layout(struct top_table *table, int terminal);

// Returns the row (NULL: the titles) as a line, without a newline. The caller frees.
char *top_table_line(const struct top_table *table, const struct top_row *row)
    __attribute__((returns_nonnull));

// Returns where on the line the column begins, and its width; -1: it is not shown.
int top_table_place(const struct top_table *table, int column, int *ret_width);

// SPDX-License-Identifier: MIT
#include "top_layout.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "top_model.h"
#include "top_table.h"
#include "top_text.h"

enum { WIDE_HISTORY = 140 }; // a terminal in which all of it is shown

static const char *cell_of(const struct top_table *table, const struct top_row *row, int column)
{
	return row ? row->cells[column] : table->columns[column].title;
}

// The widest of the titles and cells.
static int needed_width(const struct top_table *table, int column)
{
	int width = top_text_width(table->columns[column].title);

	for (size_t i = 0; i < table->n_shown; i++) {
		const int needed = top_text_width(table->rows[i].cells[column]);
		width = needed > width ? needed : width;
	}
	return width;
}

static bool is_empty(const struct top_table *table, int column)
{
	for (size_t i = 0; i < table->n_shown; i++)
		if (table->rows[i].cells[column][0])
			return false;
	return true;
}

// Of a column that has a width of its own; on a terminal of that width, 0: any.
static int own_width(const struct top_table *table, int column, int terminal)
{
	const struct top_column *known = &table->columns[column];

	if (known->content == TOP_HISTORY)
		return terminal && terminal < WIDE_HISTORY ? TOP_HISTORY_CELLS / 2 : known->width;
	if (known->content == TOP_WORD)
		return known->width;
	const int needed = needed_width(table, column);
	if (known->content == TOP_NUMBER)
		return needed > known->width ? needed : known->width;
	const int most = known->width * terminal / 100;
	return terminal && needed > most ? most : needed;
}

// Gives the columns of text that need less than their share of `room` what they need. Returns what
// is left for the others, whose widths then are still shares; *shares: their sum.
static int settle_narrow(struct top_table *table, int room, int *shares, bool settled[])
{
	for (int i = 0; i < table->n_columns; i++) {
		if (table->columns[i].content != TOP_TEXT || table->widths[i] == 0 || settled[i])
			continue;
		const int share = table->widths[i], needed = needed_width(table, i);
		if (*shares > 0 && needed >= room * share / *shares)
			continue;
		table->widths[i] = needed;
		settled[i] = true;
		*shares -= share;
		return settle_narrow(table, room - needed, shares, settled);
	}
	return room;
}

void top_layout(struct top_table *table, int terminal)
{
	bool settled[TOP_MAX_COLUMNS] = {false};
	int left = terminal, shares = 0;

	table->is_limited = terminal > 0;
	for (int i = 0; i < table->n_columns; i++) {
		const struct top_column *column = &table->columns[i];
		table->widths[i] = 0;
		if ((terminal && terminal < column->screen) ||
		    (column->is_optional && is_empty(table, i)))
			continue;
		if (column->content == TOP_TEXT)
			shares += column->width;
		table->widths[i] = column->content != TOP_TEXT ? own_width(table, i, terminal)
		                   : terminal                  ? column->width
		                                               : needed_width(table, i);
		left -= (column->content == TOP_TEXT ? 0 : table->widths[i]) + 1;
	}
	if (terminal)
		left = settle_narrow(table, left + 1 > 0 ? left + 1 : 0, &shares, settled) - 1;
	for (int i = 0; i < table->n_columns && terminal; i++) {
		if (table->columns[i].content != TOP_TEXT || table->widths[i] == 0 || settled[i])
			continue;
		const int share = table->widths[i], room = left + 1 > 0 ? left + 1 : 0;
		table->widths[i] = room * share / shares > 0 ? room * share / shares : 1;
		left -= table->widths[i];
		shares -= share;
	}
}

// "LAST 10 s", or the newest of its letters.
static char *history_cell(const struct top_row *row, int column, int width)
{
	if (!row)
		return memory_printf("LAST %d s", width);
	const size_t length = strlen(row->cells[column]), n = (size_t)width;
	return memory_strdup(row->cells[column] + (length > n ? length - n : 0));
}

static char *fit_cell(const struct top_table *table, const struct top_row *row, int column)
{
	const enum top_content content = table->columns[column].content;
	const int width = table->widths[column];
	const char *text = cell_of(table, row, column);

	if (content == TOP_HISTORY) {
		_cleanup_free_ char *history = history_cell(row, column, width);
		return top_text_fit(history, width, false);
	}
	if (content == TOP_NUMBER || content == TOP_WORD)
		return top_text_fit(text, width, content == TOP_NUMBER);
	return table->is_limited ? top_text_cut(text, width) : top_text_fit(text, width, false);
}

static bool is_last(const struct top_table *table, int column)
{
	for (int i = column + 1; i < table->n_columns; i++)
		if (table->widths[i] > 0)
			return false;
	return true;
}

char *top_table_line(const struct top_table *table, const struct top_row *row)
{
	char *line = memory_strdup("");

	for (int i = 0; i < table->n_columns; i++) {
		if (table->widths[i] == 0)
			continue;
		const bool ends = is_last(table, i);
		_cleanup_free_ char *cell = ends && !table->is_limited
		                                ? memory_strdup(cell_of(table, row, i))
		                                : fit_cell(table, row, i);
		char *longer = memory_printf("%s%s%s", line, cell, ends ? "" : " ");
		free(line);
		line = longer;
	}
	return line;
}

int top_table_place(const struct top_table *table, int column, int *ret_width)
{
	int at = 0;

	for (int i = 0; i < column; i++)
		at += table->widths[i] + (table->widths[i] > 0);
	*ret_width = table->widths[column];
	return *ret_width > 0 ? at : -1;
}

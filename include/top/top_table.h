// SPDX-License-Identifier: MIT
// top_table: the views of a window as rows of text, for the screen and for plain output alike.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct top_model;

enum top_view { TOP_THREADS, TOP_FUNCTIONS, TOP_TREE, TOP_WAITS, TOP_STACK, N_TOP_VIEWS };

// "threads", "functions", "tree", "waits", "stack".
const char *top_view_name(enum top_view view);
// The view of that name; N_TOP_VIEWS: there is none.
enum top_view top_view_named(const char *name);

// The column whose title begins with the name, in any case; -1: there is none to sort by.
int top_view_column(enum top_view view, const char *name);

// The column after that one, -1: the view's own. `all_kinds` as in the table's options.
int top_view_next_column(enum top_view view, bool all_kinds, int column);

enum { TOP_MAX_COLUMNS = 20 };

// TOP_HISTORY: a letter for each second, of its kind.
enum top_content { TOP_TEXT, TOP_NUMBER, TOP_HISTORY };

struct top_column {
	const char *title;
	int width; // in columns of the terminal; the last one takes what is left
	enum top_content content;
};

struct top_row {
	char *cells[TOP_MAX_COLUMNS]; // clean text
	double keys[TOP_MAX_COLUMNS]; // to sort by; a text's is 0
	uint64_t id;                  // of what it shows, the same from window to window
	int kind;                     // that colours the row, or -1
};

struct top_table {
	const struct top_column *columns;
	int n_columns;
	int sorted_by; // the column; -1: none, the order is the view's meaning
	struct top_row *rows;
	size_t n_rows, capacity;
	size_t n_shown; // of them, from the first on
	char *note;     // what is left out; NULL: nothing
};

struct top_table_options {
	enum top_view view;
	int sort_by;          // a column, -1: the view's own
	bool is_reversed;     // least first
	bool all_kinds;       // a column for each kind of time
	bool lines;           // of the source, in TOP_STACK
	bool hides_idle;      // threads that never woke are only counted
	uint64_t thread;      // of TOP_STACK: its position in the profile
	const uint64_t *open; // of TOP_TREE: the paths that are open, by id; borrowed
	size_t n_open;
	int open_depth; // and all down to there
};

void top_table_init(struct top_table *ret, const struct top_model *model,
                    const struct top_table_options *options);
void top_table_deinit(struct top_table *table);

// Writes the row (NULL: the titles) into a line of `width` columns at most; 0: as long as it is.
// Without a newline; the caller frees.
char *top_table_line(const struct top_table *table, const struct top_row *row, int width)
    __attribute__((returns_nonnull));

// SPDX-License-Identifier: MIT
// top_table: makes rows of text of a window's views, for the screen and for plain output alike.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct top_model;

enum top_view { TOP_THREADS, TOP_FUNCTIONS, TOP_TREE, TOP_WAITS, TOP_STACK, N_TOP_VIEWS };

// Returns "threads", "functions", "tree", "waits" or "stack".
const char *top_view_name(enum top_view view);
// Returns the view of that name; N_TOP_VIEWS: there is none.
enum top_view top_view_named(const char *name);

// Returns the column whose title begins with the name, upper or lower case; -1: there is no such
// column to sort by.
int top_view_column(enum top_view view, const char *name);

// Returns the column to sort by after `column`; -1 stands for the view's own order in both.
// `all_kinds` is as in struct top_table_options.
int top_view_next_column(enum top_view view, bool all_kinds, int column);

enum { TOP_MAX_COLUMNS = 20 };

enum top_content {
	TOP_NUMBER, // at least as wide as its width says
	TOP_WORD,
	TOP_NAME,    // as wide as the longest, or as there is room
	TOP_TEXT,    // shares with others of its kind what the rest leaves
	TOP_HISTORY, // a letter for each second's kind (top_kind_letter)
};

struct top_column {
	const char *title;
	int width; // in the terminal's columns; TOP_NAME: the most in a hundredth of the terminal;
	           // TOP_TEXT: the column's share
	enum top_content content;
	int screen;       // is shown on terminals of at least this width
	bool is_optional; // is left out where no row has anything
};

// A row of the tree that the user opened or closed.
struct top_branch {
	uint64_t id; // of the row
	bool is_open;
};

// Which rows of the tree are open beside those; TOP_OPEN_HOT: those that take much time.
enum top_opens { TOP_OPEN_HOT, TOP_OPEN_ALL, TOP_OPEN_NONE };

struct top_row {
	char *cells[TOP_MAX_COLUMNS]; // clean text
	double keys[TOP_MAX_COLUMNS]; // numbers to sort by; 0 for a text
	uint64_t id;                  // of what the row shows, the same from window to window
	int kind;                     // whose colour the row has; -1: none
	double weight;                // what comes first among rows that are equal otherwise
	bool is_open;                 // of the tree
};

struct top_table {
	const struct top_column *columns;
	int n_columns;
	int sorted_by; // a column; -1: none, the view has an order of its own
	struct top_row *rows;
	size_t n_rows, capacity;
	size_t n_shown;              // the first n_shown rows are shown
	int widths[TOP_MAX_COLUMNS]; // of the columns; 0: left out
	bool is_limited;             // there is a terminal: what is too long is cut
	char *note;                  // tells what is left out; NULL: nothing is
};

struct top_table_options {
	enum top_view view;
	int sort_by;      // a column; -1: the view's own order
	bool is_reversed; // least first
	bool all_kinds;   // a column for each kind of time
	bool hides_idle;  // threads that have slept since they were first seen, and on a
	                  // terminal those that have ended, are only counted, if others are there
	bool shows_all;   // functions: where samples were taken, not the program's own function
	bool is_screen;   // keys can be told of
	int width;        // of the terminal; 0: no limit
	uint64_t thread;  // TOP_STACK: the thread's position in the profile
	enum top_opens opens;              // TOP_TREE
	const struct top_branch *branches; // borrowed
	size_t n_branches;
};

void top_table_init(struct top_table *ret, const struct top_model *model,
                    const struct top_table_options *options);
void top_table_deinit(struct top_table *table);

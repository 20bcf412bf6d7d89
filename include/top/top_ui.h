// SPDX-License-Identifier: MIT
// top_ui: the state of the screen of `profiler top`, and what its keys do. It knows of no terminal
// and no process.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "top_table.h"

struct top_source;

enum { TOP_UI_TEXT = 64 };

// Keeps the rows of a live table in their places for some seconds, as nobody can read rows that
// jump.
struct top_order {
	uint64_t *ids; // of the rows, in the order in which they were last sorted
	size_t n, capacity;
	int64_t at_ns;  // when they were sorted
	uint64_t sorts; // a number for what they were sorted by
};

struct top_ui {
	struct top_source *source; // borrowed
	enum top_view view;
	int sort_by[N_TOP_VIEWS]; // -1: the view's own
	bool is_reversed[N_TOP_VIEWS];
	int64_t window_ns;
	int64_t interval_ns; // from frame to frame
	int64_t reset_ns;    // nothing before this time is shown
	bool colours;
	bool paused;
	int64_t at_ns; // the end of the window while paused
	bool plays;    // a recording is played: at_ns advances by itself
	bool shows_idle;
	bool all_kinds; // a column for each kind
	bool shows_all; // raw functions and stacks, not by the program's own code
	char wish;      // what the user asked to save, for the caller to do and clear: 'd' a dump,
	                // 'S' a page, 'p' pprof; 0: nothing
	char *said;     // what became of the wish; owned; NULL: nothing
	struct top_order order;
	bool shows_help;
	bool quits;
	size_t cursor, scroll;
	uint64_t cursor_id; // of the cursor's row, with which it moves
	uint64_t *ids;      // of the rows as last shown
	size_t n_ids, ids_capacity;
	bool has_cursor;
	uint64_t thread;     // TOP_STACK: the one that is shown
	bool cursor_is_open; // TOP_TREE: the row at the cursor is
	enum top_opens opens;
	struct top_branch *branches;
	size_t n_branches, branches_capacity;
	char typing;              // '/' or '\\' while a text is being typed; else 0
	char text[TOP_UI_TEXT];   // the text being typed
	char filter[TOP_UI_TEXT]; // rows without this text are left out; "": none
	char search[TOP_UI_TEXT];
	const char *trouble; // is shown in the header; borrowed; NULL: none
};

void top_ui_init(struct top_ui *ret, struct top_source *source);
void top_ui_deinit(struct top_ui *ui);

// Does what the key (screen.h) means on a screen of that height.
void top_ui_key(struct top_ui *ui, int key, int height);

// Returns the window that is shown: from <= t < to.
void top_ui_window(const struct top_ui *ui, int64_t *ret_from_ns, int64_t *ret_to_ns);

void top_order_deinit(struct top_order *order);

// Puts the rows where they were when they were last sorted, with new ones at the end; keeps the
// table's own order if that was long ago, or if `sorts`, a number for what the table is sorted by,
// has changed.
void top_order_keep(struct top_order *order, struct top_table *table, int64_t now_ns,
                    uint64_t sorts);

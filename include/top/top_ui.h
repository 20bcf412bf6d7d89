// SPDX-License-Identifier: MIT
// top_ui: what the screen of `profiler top` shows, and what its keys do. It knows the source and a
// size, no terminal and no process: it makes rows of text.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "top_order.h"
#include "top_table.h"

struct top_source;

enum { TOP_UI_TEXT = 64 };

struct top_ui {
	struct top_source *source; // borrowed
	enum top_view view;
	int sort_by[N_TOP_VIEWS]; // -1: the view's own
	bool is_reversed[N_TOP_VIEWS];
	int64_t window_ns;
	int64_t interval_ns; // from frame to frame
	int64_t reset_ns;    // what was before is not looked at
	bool colours;
	bool paused;
	int64_t at_ns; // the end of the window while paused
	bool plays;    // a recording: at_ns goes on by itself
	bool shows_idle;
	bool all_kinds; // a column for each
	bool lines;     // in stacks
	char wish;      // of the user's, for the caller to grant and clear: 'd' a dump, 'S' a page,
	                // 'p' pprof; 0: none
	char *said;     // what became of it; owned; NULL: nothing
	struct top_order order;
	bool shows_help;
	bool quits;
	size_t cursor, scroll;
	uint64_t cursor_id; // of the row there; it stays with the row
	uint64_t *ids;      // of the rows as they were shown last
	size_t n_ids, ids_capacity;
	bool has_cursor;
	uint64_t thread; // of TOP_STACK
	uint64_t *open;  // of TOP_TREE: opened or closed by hand
	size_t n_open, open_capacity;
	char typing;              // '/' or '\\': a text is being typed; 0: none
	char text[TOP_UI_TEXT];   // it
	char filter[TOP_UI_TEXT]; // rows without it are left out; "": none
	char search[TOP_UI_TEXT];
	const char *trouble; // the header says so; borrowed; NULL: nothing
};

void top_ui_init(struct top_ui *ret, struct top_source *source);
void top_ui_deinit(struct top_ui *ui);

// A key (screen.h) was pressed.
void top_ui_key(struct top_ui *ui, int key, int height);

// The time that is looked at, from <= t < to.
void top_ui_window(const struct top_ui *ui, int64_t *ret_from_ns, int64_t *ret_to_ns);

// The rows of a screen of that size, each of at most `width` columns; the array and the rows are
// the caller's to free.
char **top_ui_rows(struct top_ui *ui, int width, int height) __attribute__((returns_nonnull));

// SPDX-License-Identifier: MIT
#include "top_ui.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "memory.h"
#include "screen.h"
#include "top_source.h"
#include "top_table.h"

enum { HEAD_ROWS = 3 };

static const int64_t windows_ns[] = {NS_PER_SECOND, 10 * NS_PER_SECOND, 60 * NS_PER_SECOND,
                                     INT64_MAX};

static const int64_t intervals_ns[] = {
    100 * NS_PER_MS,   200 * NS_PER_MS,   500 * NS_PER_MS,    NS_PER_SECOND,
    2 * NS_PER_SECOND, 5 * NS_PER_SECOND, 10 * NS_PER_SECOND,
};

void top_ui_init(struct top_ui *ret, struct top_source *source)
{
	*ret = (struct top_ui){
	    .source = source,
	    .window_ns = 10 * NS_PER_SECOND,
	    .interval_ns = NS_PER_SECOND,
	};
	for (int i = 0; i < N_TOP_VIEWS; i++)
		ret->sort_by[i] = -1;
}

void top_ui_deinit(struct top_ui *ui)
{
	free(ui->branches);
	free(ui->ids);
	free(ui->said);
	top_order_deinit(&ui->order);
	*ui = (struct top_ui){0};
}

static void set_view(struct top_ui *ui, enum top_view view)
{
	if (view == ui->view)
		return;
	if (ui->view == TOP_THREADS && ui->has_cursor)
		ui->thread = ui->cursor_id;
	ui->view = view;
	ui->filter[0] = '\0';
	ui->cursor = ui->scroll = ui->n_ids = 0;
	ui->has_cursor = false;
}

static void next_window(struct top_ui *ui)
{
	size_t i = 0;

	while (i < array_size(windows_ns) && windows_ns[i] <= ui->window_ns)
		i++;
	ui->window_ns = windows_ns[i < array_size(windows_ns) ? i : 0];
}

static void change_interval(struct top_ui *ui, bool longer)
{
	const size_t n = array_size(intervals_ns);
	size_t i = 0;

	while (i + 1 < n && intervals_ns[i] < ui->interval_ns)
		i++;
	if (longer ? i + 1 < n : i > 0)
		ui->interval_ns = intervals_ns[longer ? i + 1 : i - 1];
}

static void reset(struct top_ui *ui)
{
	ui->reset_ns = ui->paused ? ui->at_ns : ui->source->now_ns;
}

static void show_all_kinds(struct top_ui *ui)
{
	ui->all_kinds = !ui->all_kinds;
	for (int i = 0; i < N_TOP_VIEWS; i++)
		ui->sort_by[i] = -1;
}

static void step(struct top_ui *ui, int64_t ns)
{
	if (!ui->paused)
		ui->at_ns = ui->source->now_ns;
	ui->paused = true;
	ui->plays = false;
	ui->at_ns += ns;
	if (ui->at_ns < 0)
		ui->at_ns = 0;
	if (ui->at_ns > ui->source->now_ns)
		ui->at_ns = ui->source->now_ns;
}

static void pause_or_play(struct top_ui *ui)
{
	if (ui->source->is_stream && !ui->source->ended) {
		ui->paused = !ui->paused;
		ui->at_ns = ui->source->now_ns;
	} else {
		if (ui->at_ns >= ui->source->now_ns)
			ui->at_ns = 0;
		ui->paused = true;
		ui->plays = !ui->plays;
	}
}

// Opens or closes the tree's row at the cursor.
static void set_open(struct top_ui *ui, bool is_open)
{
	if (!ui->has_cursor)
		return;
	ui->cursor_is_open = is_open;
	for (size_t i = 0; i < ui->n_branches; i++) {
		if (ui->branches[i].id != ui->cursor_id)
			continue;
		ui->branches[i].is_open = is_open;
		return;
	}
	*array_push(ui->branches, ui->n_branches, ui->branches_capacity) =
	    (struct top_branch){ui->cursor_id, is_open};
}

// All rows, or none.
static void open_all(struct top_ui *ui)
{
	ui->opens = ui->opens == TOP_OPEN_ALL ? TOP_OPEN_NONE : TOP_OPEN_ALL;
	ui->n_branches = 0;
}

static bool take_branch(struct top_ui *ui, int key)
{
	if (ui->view != TOP_TREE)
		return false;
	if (key == '+' || key == SCREEN_RIGHT)
		set_open(ui, true);
	else if (key == '-' || key == SCREEN_LEFT)
		set_open(ui, false);
	else if (key == '*')
		open_all(ui);
	else
		return false;
	return true;
}

static void type(struct top_ui *ui, int key)
{
	const size_t n = strlen(ui->text);
	char *to = ui->typing == '/' ? ui->search : ui->filter;

	if (key == '\r' || key == '\n') {
		memcpy(to, ui->text, sizeof(ui->text));
		ui->typing = 0;
	} else if (key == SCREEN_ESCAPE) {
		to[0] = '\0';
		ui->typing = 0;
	} else if ((key == 0x7f || key == '\b') && n > 0) {
		ui->text[n - 1] = '\0';
	} else if (key >= ' ' && key < 0x7f && n + 1 < sizeof(ui->text)) {
		ui->text[n] = (char)key;
		ui->text[n + 1] = '\0';
	}
}

static void enter(struct top_ui *ui)
{
	if (ui->view == TOP_THREADS && ui->has_cursor)
		set_view(ui, TOP_STACK);
	else if (ui->view == TOP_TREE)
		set_open(ui, !ui->cursor_is_open);
}

static void move(struct top_ui *ui, int64_t rows)
{
	const int64_t to = (int64_t)ui->cursor + rows;

	if (ui->n_ids == 0)
		return;
	ui->cursor = to <= 0 ? 0 : to < (int64_t)ui->n_ids ? (size_t)to : ui->n_ids - 1;
	ui->cursor_id = ui->ids[ui->cursor];
	ui->has_cursor = true;
}

static bool take_move(struct top_ui *ui, int key, int height)
{
	const int page = height > HEAD_ROWS + 2 ? height - HEAD_ROWS - 1 : 1;

	if (key == SCREEN_UP || key == 'k')
		move(ui, -1);
	else if (key == SCREEN_DOWN || key == 'j')
		move(ui, 1);
	else if (key == SCREEN_PAGE_UP)
		move(ui, -page);
	else if (key == SCREEN_PAGE_DOWN)
		move(ui, page);
	else if (key == SCREEN_HOME)
		move(ui, -(int64_t)ui->cursor);
	else if (key == SCREEN_END)
		move(ui, INT32_MAX);
	else
		return false;
	return true;
}

static void begin_typing(struct top_ui *ui, char what)
{
	ui->typing = what;
	ui->text[0] = '\0';
}

static void take_letter(struct top_ui *ui, int key)
{
	int *sort_by = &ui->sort_by[ui->view];

	if (key >= '1' && key <= '5')
		set_view(ui, (enum top_view)(key - '1'));
	else if (key == '\t')
		set_view(ui, (ui->view + 1) % N_TOP_VIEWS);
	else if (key == 's' || key == SCREEN_F1 + 5)
		*sort_by = top_view_next_column(ui->view, ui->all_kinds, *sort_by);
	else if (key == 'r' || key == 'I')
		ui->is_reversed[ui->view] = !ui->is_reversed[ui->view];
	else if (key == 'i')
		ui->shows_idle = !ui->shows_idle;
	else if (key == 'w')
		next_window(ui);
	else if (key == '+' || key == '-')
		change_interval(ui, key == '-');
	else if (key == SCREEN_F1 + 4)
		set_view(ui, TOP_TREE);
	else if (key == 'R')
		reset(ui);
	else if (key == 'K')
		show_all_kinds(ui);
	else if (key == 'o')
		ui->shows_all = !ui->shows_all;
	else if (key == 'd' || key == 'S' || key == 'p')
		ui->wish = (char)key;
	else if (key == ' ')
		pause_or_play(ui);
	else if (key == ',' || key == '.')
		step(ui, key == ',' ? -NS_PER_SECOND : NS_PER_SECOND);
	else if (key == '<' || key == '>')
		step(ui, (key == '<' ? -10 : 10) * NS_PER_SECOND);
}

void top_ui_key(struct top_ui *ui, int key, int height)
{
	free(take_pointer(ui->said));
	if (ui->typing) {
		type(ui, key);
	} else if (ui->shows_help) {
		ui->shows_help = false;
	} else if (key == 'q' || key == 3 || key == SCREEN_F10) { // 3: Ctrl-C
		ui->quits = true;
	} else if (key == '?' || key == 'h' || key == SCREEN_F1) {
		ui->shows_help = true;
	} else if (key == '/' || key == SCREEN_F1 + 2) {
		begin_typing(ui, '/');
	} else if (key == '\\' || key == SCREEN_F1 + 3) {
		begin_typing(ui, '\\');
	} else if (key == '\r' || key == '\n') {
		enter(ui);
	} else if (key == SCREEN_ESCAPE) {
		ui->filter[0] = ui->search[0] = '\0';
		if (ui->view == TOP_STACK)
			set_view(ui, TOP_THREADS);
	} else if (!take_branch(ui, key) && !take_move(ui, key, height)) {
		take_letter(ui, key);
	}
}

void top_ui_window(const struct top_ui *ui, int64_t *ret_from_ns, int64_t *ret_to_ns)
{
	const int64_t at_ns = ui->paused ? ui->at_ns : ui->source->now_ns;
	const int64_t from_ns = ui->window_ns < at_ns ? at_ns - ui->window_ns : 0;

	*ret_from_ns = from_ns < ui->reset_ns && ui->reset_ns <= at_ns ? ui->reset_ns : from_ns;
	*ret_to_ns = at_ns + 1; // with what lies at the very end
}

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

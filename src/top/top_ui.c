// SPDX-License-Identifier: MIT
#include "top_ui.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "memory.h"
#include "screen.h"
#include "text.h"
#include "top_source.h"
#include "top_text.h"

enum {
	OPEN_DEPTH = 3,
	HEAD_ROWS = 3,
	MAX_ID_BYTES = 32,
	MIN_ROWS_FOR_STACK = 12,
	MAX_SHOWN_FRAMES = 30,
};

static const int64_t windows_ns[] = {NS_PER_SECOND, 10 * NS_PER_SECOND, 60 * NS_PER_SECOND,
                                     INT64_MAX};

static const int64_t intervals_ns[] = {
    100 * NS_PER_MS,   200 * NS_PER_MS,   500 * NS_PER_MS,    NS_PER_SECOND,
    2 * NS_PER_SECOND, 5 * NS_PER_SECOND, 10 * NS_PER_SECOND,
};

static const char *const help[] = {
    "1 threads  2 functions  3 tree  4 waits  5 stack of the thread   Tab next",
    "up down j k PgUp PgDn Home End   move;  Enter: the thread's stack; Esc back",
    "s F6  sort by the next column      r I  the other way round",
    "/ F3  search      \\ F4  only rows with a text      h  those that never woke",
    "w  window: 1 s, 10 s, 60 s, all    R  from now on   + - *  open, close (tree)",
    "K  all kinds      l  lines of stacks          + -  more often, less (not in the tree)",
    "d  write a dump   S  the last minute as a page   p  the window as pprof",
    "space  pause, or play a recording  , .  a second back, on   < >  ten",
    "q F10  quit       Ctrl-Z  to the shell: sampling goes on",
    "R running Q runnable: waiting for a CPU (READY%)   L lock C condition F file",
    "S socket E event T timer P pipe X stopped",
    "Shares: each tick takes one sample of every thread; all samples of a window count alike.",
    "The line about waits for CPUs is by the kernel's own count of each thread's time.",
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
	free(ui->open);
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

static void toggle_open(struct top_ui *ui)
{
	for (size_t i = 0; i < ui->n_open; i++) {
		if (ui->open[i] != ui->cursor_id)
			continue;
		ui->open[i] = ui->open[--ui->n_open];
		return;
	}
	if (ui->has_cursor)
		*array_push(ui->open, ui->n_open, ui->open_capacity) = ui->cursor_id;
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
		toggle_open(ui);
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
	else if (key == 'h')
		ui->shows_idle = !ui->shows_idle;
	else if (key == 'w')
		next_window(ui);
	else if (ui->view == TOP_TREE && (key == '+' || key == '-' || key == '*'))
		toggle_open(ui);
	else if (key == '+' || key == '-')
		change_interval(ui, key == '-');
	else if (key == SCREEN_F1 + 4)
		set_view(ui, TOP_TREE);
	else if (key == 'R')
		reset(ui);
	else if (key == 'K')
		show_all_kinds(ui);
	else if (key == 'l')
		ui->lines = !ui->lines;
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
	} else if (key == '?' || key == SCREEN_F1) {
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
	} else if (!take_move(ui, key, height)) {
		take_letter(ui, key);
	}
}

static const char *colour_of(const struct top_ui *ui, int kind)
{
	static const char *const colours[N_WAIT_KINDS] = {
	    [WAIT_KIND_RUNNING] = "\x1b[38;5;214m", [WAIT_KIND_RUNNABLE] = "\x1b[38;5;227m",
	    [WAIT_KIND_LOCK] = "\x1b[38;5;134m",    [WAIT_KIND_CONDITION] = "\x1b[38;5;223m",
	    [WAIT_KIND_FILE] = "\x1b[38;5;173m",    [WAIT_KIND_SOCKET] = "\x1b[38;5;75m",
	    [WAIT_KIND_EVENT] = "\x1b[38;5;153m",   [WAIT_KIND_TIMER] = "\x1b[38;5;250m",
	    [WAIT_KIND_PIPE] = "\x1b[38;5;35m",     [WAIT_KIND_STOPPED] = "\x1b[38;5;245m",
	};

	return ui->colours && kind >= 0 && kind < N_WAIT_KINDS ? colours[kind] : "";
}

static int kind_of_letter(char letter)
{
	for (int i = 0; i < N_WAIT_KINDS; i++)
		if (top_kind_letter((enum wait_kind)i) == letter)
			return i;
	return -1;
}

static bool contains(const struct top_row *row, int n_columns, const char *text)
{
	for (int i = 0; i < n_columns; i++)
		if (row->cells[i] && strcasestr(row->cells[i], text))
			return true;
	return false;
}

static void apply_filter(struct top_table *table, const char *text)
{
	size_t kept = 0;

	if (!text[0])
		return;
	for (size_t i = 0; i < table->n_rows; i++) {
		const struct top_row row = table->rows[i];
		if (!contains(&row, table->n_columns, text)) {
			// Behind the rows that are shown, whence it is freed.
			continue;
		}
		table->rows[i] = table->rows[kept];
		table->rows[kept++] = row;
	}
	table->n_shown = kept;
}

// The cursor stays with its row, wherever that has moved.
static void place_cursor(struct top_ui *ui, const struct top_table *table, size_t room)
{
	for (size_t i = 0; i < table->n_shown && ui->has_cursor; i++)
		if (table->rows[i].id == ui->cursor_id)
			ui->cursor = i;
	for (size_t i = 0; i < table->n_shown && ui->search[0]; i++) {
		if (!contains(&table->rows[i], table->n_columns, ui->search))
			continue;
		ui->cursor = i;
		ui->search[0] = '\0';
	}
	if (ui->cursor >= table->n_shown)
		ui->cursor = table->n_shown ? table->n_shown - 1 : 0;
	ui->has_cursor = table->n_shown > 0;
	if (ui->has_cursor)
		ui->cursor_id = table->rows[ui->cursor].id;
	ui->n_ids = 0;
	for (size_t i = 0; i < table->n_shown; i++)
		*array_push(ui->ids, ui->n_ids, ui->ids_capacity) = table->rows[i].id;
	if (ui->cursor < ui->scroll)
		ui->scroll = ui->cursor;
	if (room > 0 && ui->cursor >= ui->scroll + room)
		ui->scroll = ui->cursor - room + 1;
}

static char *state_text(const struct top_ui *ui, int64_t to_ns)
{
	const struct top_source *source = ui->source;

	if (source->is_stream && !source->ended)
		return memory_strdup(ui->paused ? "[PAUSED]" : "[LIVE]");
	if (source->is_stream && !ui->paused)
		return memory_strdup("[ENDED]");
	return memory_printf("[%s %.0f of %.0f s]", ui->plays ? "PLAYS" : "AT",
	                     (double)to_ns / (double)NS_PER_SECOND,
	                     (double)source->now_ns / (double)NS_PER_SECOND);
}

static char *first_line(const struct top_ui *ui, int64_t to_ns)
{
	const struct recording *recording = &ui->source->recording;
	const char *name = profile_process_name(&recording->profile, recording->pid);
	_cleanup_free_ char *clean = text_clean(name, strlen(name), MAX_ID_BYTES);
	_cleanup_free_ char *state = state_text(ui, to_ns);
	_cleanup_free_ char *window =
	    ui->window_ns == INT64_MAX
	        ? memory_strdup("all")
	        : memory_printf("last %.0f s", (double)ui->window_ns / (double)NS_PER_SECOND);
	_cleanup_free_ char *dropped =
	    recording->dropped_samples
	        ? memory_printf(", %" PRIu64 " dropped", recording->dropped_samples)
	        : memory_strdup("");
	const double now_ns = (double)ui->source->now_ns;

	if (ui->said)
		return memory_printf("%s %s", state, ui->said);
	return memory_printf("%s pid %d %s  %s  held %.2f %%  %" PRIu64 " ticks, %" PRIu64
	                     " missed%s%s%s  ? help",
	                     state, recording->pid, clean, window,
	                     now_ns > 0 ? 100 * (double)recording->held_ns / now_ns : 0,
	                     recording->ticks, recording->missed_ticks, dropped,
	                     ui->trouble ? "  " : "", ui->trouble ? ui->trouble : "");
}

static char *second_line(const struct top_ui *ui, const struct top_model *model)
{
	size_t now[N_WAIT_KINDS] = {0};
	char *line = memory_printf("%s: %zu thread%s", top_view_name(ui->view), model->n_threads,
	                           text_plural(model->n_threads));

	for (size_t i = 0; i < model->n_threads; i++)
		if (model->threads[i].sample != TOP_NONE && !model->threads[i].ended)
			now[model->threads[i].now]++;
	for (int i = 0; i < N_WAIT_KINDS; i++) {
		if (now[i] == 0)
			continue;
		char *longer =
		    memory_printf("%s  %zu %s", line, now[i], wait_kind_words((enum wait_kind)i));
		free(line);
		line = longer;
	}
	if (ui->typing || ui->filter[0]) {
		char *longer = memory_printf(
		    "%s   %s%s", line,
		    ui->typing == '/' ? "/" : "only with: ", ui->typing ? ui->text : ui->filter);
		free(line);
		line = longer;
	}
	return line;
}

// Where the rows are gathered.
struct sheet {
	char **rows;
	int n, width, height;
};

static void add(struct sheet *sheet, const char *before, const char *text)
{
	if (sheet->n >= sheet->height)
		return;
	_cleanup_free_ char *fitted = top_text_fit(text, sheet->width, false);
	sheet->rows[sheet->n++] = memory_printf("%s%s", before, fitted);
}

// The row with each letter of its history in the colour of its kind.
static void add_history_row(const struct top_ui *ui, struct sheet *sheet,
                            const struct top_table *table, const char *line, int kind)
{
	const char *colour = colour_of(ui, kind);
	int column = 0, i = 0;

	while (i < table->n_columns && table->columns[i].content != TOP_HISTORY)
		column += table->columns[i++].width + 1;
	if (i == table->n_columns || !ui->colours || column + TOP_HISTORY_CELLS > sheet->width ||
	    sheet->n >= sheet->height) {
		add(sheet, colour, line);
		return;
	}
	_cleanup_free_ char *fitted = top_text_fit(line, sheet->width, false);
	_cleanup_free_ char *before = top_text_fit(line, column, false);
	const size_t start = strlen(before);
	char *row = memory_printf("%s%s", colour, before);
	for (i = 0; i < TOP_HISTORY_CELLS; i++) {
		const char letter = fitted[start + (size_t)i];
		char *longer =
		    memory_printf("%s%s%c", row, colour_of(ui, kind_of_letter(letter)), letter);
		free(row);
		row = longer;
	}
	sheet->rows[sheet->n++] =
	    memory_printf("%s%s%s", row, colour, fitted + start + TOP_HISTORY_CELLS);
	free(row);
}

// "worker-2: read < fill < main" of the thread at the cursor.
static void add_stack_line(const struct top_ui *ui, struct sheet *sheet,
                           const struct top_model *model)
{
	const struct top_thread *thread = NULL;
	size_t n = 0;

	for (size_t i = 0; i < model->n_threads; i++)
		if (model->threads[i].thread == ui->cursor_id)
			thread = &model->threads[i];
	if (!thread || thread->sample == TOP_NONE) {
		add(sheet, "", "");
		return;
	}
	char **names = top_stack(model, thread->sample, TOP_STACK_NAMES, &n);
	char *line = memory_strdup("---");
	for (size_t i = 0; i < n; i++) {
		char *longer = i < MAX_SHOWN_FRAMES
		                   ? memory_printf("%s %s%s", line, i ? "< " : "", names[i])
		                   : memory_strdup(line);
		free(line);
		line = longer;
		free(names[i]);
	}
	free(names);
	add(sheet, "\x1b[1m", line);
	free(line);
}

static void add_table(struct top_ui *ui, struct sheet *sheet, struct top_table *table, int n_below)
{
	const bool has_note = table->note && sheet->height > HEAD_ROWS + 2;
	const int room = sheet->height - sheet->n - has_note - n_below;

	place_cursor(ui, table, room > 0 ? (size_t)room : 0);
	for (int i = 0; i < room; i++) {
		const size_t row = ui->scroll + (size_t)i;
		if (row >= table->n_shown) {
			add(sheet, "", "");
			continue;
		}
		_cleanup_free_ char *line = top_table_line(table, &table->rows[row], 0);
		if (row == ui->cursor)
			add(sheet, "\x1b[7m", line);
		else
			add_history_row(ui, sheet, table, line, table->rows[row].kind);
	}
	if (has_note)
		add(sheet, "", table->note);
}

static void add_help(struct sheet *sheet)
{
	for (size_t i = 0; i < array_size(help); i++)
		add(sheet, "", help[i]);
}

// Rows move when the user wants them to, or after a while.
static void keep_order(struct top_ui *ui, struct top_table *table, const struct top_model *model)
{
	const uint64_t sorts = (uint64_t)ui->view << 32 |
	                       (uint64_t)(ui->sort_by[ui->view] + 1) << 8 |
	                       (uint64_t)ui->is_reversed[ui->view] << 1 | ui->all_kinds;

	if (table->sorted_by >= 0 && (!ui->paused || ui->plays))
		top_order_keep(&ui->order, table, model->input.to_ns, sorts);
}

static void add_view(struct top_ui *ui, struct sheet *sheet, const struct top_model *model)
{
	struct top_table table;

	top_table_init(&table, model,
	               &(struct top_table_options){
	                   .view = ui->view,
	                   .sort_by = ui->sort_by[ui->view],
	                   .is_reversed = ui->is_reversed[ui->view],
	                   .all_kinds = ui->all_kinds,
	                   .lines = ui->lines,
	                   .hides_idle = !ui->shows_idle,
	                   .is_screen = true,
	                   .thread = ui->thread,
	                   .open = ui->open,
	                   .n_open = ui->n_open,
	                   .open_depth = OPEN_DEPTH,
	               });
	_cleanup_free_ char *titles = top_table_line(&table, NULL, 0);
	add(sheet, "\x1b[1m", titles);
	apply_filter(&table, ui->filter);
	keep_order(ui, &table, model);
	const bool has_stack = ui->view == TOP_THREADS && sheet->height >= MIN_ROWS_FOR_STACK;
	add_table(ui, sheet, &table, has_stack);
	if (has_stack)
		add_stack_line(ui, sheet, model);
	top_table_deinit(&table);
}

void top_ui_window(const struct top_ui *ui, int64_t *ret_from_ns, int64_t *ret_to_ns)
{
	const int64_t at_ns = ui->paused ? ui->at_ns : ui->source->now_ns;
	const int64_t from_ns = ui->window_ns < at_ns ? at_ns - ui->window_ns : 0;

	*ret_from_ns = from_ns < ui->reset_ns && ui->reset_ns <= at_ns ? ui->reset_ns : from_ns;
	*ret_to_ns = at_ns + 1; // with what lies at the very end
}

char **top_ui_rows(struct top_ui *ui, int width, int height)
{
	struct sheet sheet = {
	    .rows = memory_alloc_zeroed((size_t)height + 1, sizeof(*sheet.rows)),
	    .width = width,
	    .height = height,
	};
	struct top_model model;
	int64_t from_ns, to_ns;

	top_ui_window(ui, &from_ns, &to_ns);
	top_source_look(ui->source, from_ns, to_ns, ui->view == TOP_TREE, &model);
	to_ns--;
	_cleanup_free_ char *first = first_line(ui, to_ns);
	_cleanup_free_ char *second = second_line(ui, &model);
	add(&sheet, "\x1b[7m", first);
	if (height > HEAD_ROWS)
		add(&sheet, "", second);
	_cleanup_free_ char *cpu_wait = height > HEAD_ROWS + 2 ? top_cpu_wait(&model) : NULL;
	if (cpu_wait)
		add(&sheet, colour_of(ui, WAIT_KIND_RUNNABLE), cpu_wait);
	if (ui->shows_help)
		add_help(&sheet);
	else
		add_view(ui, &sheet, &model);
	while (sheet.n < height)
		add(&sheet, "", "");
	top_model_deinit(&model);
	return sheet.rows;
}

// SPDX-License-Identifier: MIT
#include "top_draw.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "memory.h"
#include "share_doubts.h"
#include "text.h"
#include "top_layout.h"
#include "top_source.h"
#include "top_text.h"
#include "top_ui.h"

enum {
	HEAD_ROWS = 3,
	MAX_ID_BYTES = 32,
	MIN_ROWS_FOR_STACK = 12,
	MIN_ROWS_FOR_KEYS = 8,
	MAX_SHOWN_FRAMES = 30,
	MUCH_MISSED_PERCENT = 5,
};

static const char *const help[] = {
    "1 Threads   2 Functions   3 Tree of calls   4 Waits   5 Stack of the thread",
    "Tab: next view   Enter: the thread's stack   Esc: back",
    "Up Down j k PgUp PgDn Home End: move     q F10: quit",
    "/ F3: search   \\ F4: show only rows that contain a text",
    "i: show or hide idle time and idle threads",
    "o: your own code, or all functions as sampled",
    "s F6: sort by the next column   r I: reverse the order   K: a column for each wait",
    "Space: pause the screen   w: time added up: 1 s, 10 s, 60 s, all",
    "R: start counting again   + -: update more or less often",
    "Tree: + - Right Left: open and close a row   *: all rows",
    "Recording: Space plays it   , . go back, ahead 1 s   < > 10 s",
    "Save: d what all threads do now   S last minute as HTML   p this time as pprof",
    "Ctrl-Z: back to the shell; sampling continues",
    "",
    "R running   Q runnable: ready, waits for a CPU (READY%)   L lock",
    "F file   S socket   P pipe, child process, terminal   X stopped",
    "Usually idle:   C condition: waits until another thread signals, often for work",
    "E event: epoll, poll, select   T timer: sleeps",
    "RUN% READY% LOCK% I/O% IDLE%: of the time shown at the top, by samples",
};

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
	ui->cursor_is_open = ui->has_cursor && table->rows[ui->cursor].is_open;
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
	                     clock_seconds(to_ns), clock_seconds(source->now_ns));
}

// What went wrong, where it is much: "  14 % of the samples missed"; "": nothing.
static char *faults_text(const struct recording *recording)
{
	const uint64_t due = recording->ticks + recording->missed_ticks;
	const uint64_t missed = due ? 100 * recording->missed_ticks / due : 0;
	char *text = missed >= MUCH_MISSED_PERCENT
	                 ? memory_printf("  %" PRIu64 " %% of the samples missed", missed)
	                 : memory_strdup("");

	if (recording->dropped_samples == 0)
		return text;
	char *longer = memory_printf("%s  %" PRIu64 " samples without stacks", text,
	                             recording->dropped_samples);
	free(text);
	return longer;
}

static char *first_line(const struct top_ui *ui, int64_t to_ns)
{
	const struct recording *recording = &ui->source->recording;
	const char *name = profile_process_name(&recording->profile, recording->pid);
	_cleanup_free_ char *clean = text_clean(name, strlen(name), MAX_ID_BYTES);
	_cleanup_free_ char *state = state_text(ui, to_ns);
	_cleanup_free_ char *window =
	    ui->window_ns == INT64_MAX ? memory_strdup("all")
	                               : memory_printf("last %.0f s", clock_seconds(ui->window_ns));
	_cleanup_free_ char *faults = faults_text(recording);
	const double now_ns = (double)ui->source->now_ns;

	if (ui->said)
		return memory_printf("%s %s", state, ui->said);
	return memory_printf("%s pid %d %s  %s  overhead %.2f %%%s%s%s", state, recording->pid,
	                     clean, window,
	                     now_ns > 0 ? 100 * (double)recording->held_ns / now_ns : 0, faults,
	                     ui->trouble ? "  " : "", ui->trouble ? ui->trouble : "");
}

// "23 threads: 1 running, 3 lock".
static char *second_line(const struct top_ui *ui, const struct top_model *model)
{
	size_t now[N_WAIT_KINDS] = {0}, n = 0;

	for (size_t i = 0; i < model->n_threads; i++) {
		const struct top_thread *thread = &model->threads[i];
		const bool is_there = thread->sample != TOP_NONE && !thread->ended;
		now[is_there ? thread->now : 0] += is_there;
		n += is_there;
	}
	char *line = memory_printf("%zu thread%s", n, text_plural(n));
	for (int i = 0, n_told = 0; i < N_WAIT_KINDS; i++) {
		if (now[i] == 0)
			continue;
		char *longer = memory_printf("%s%s %zu %s", line, n_told++ ? "," : ":", now[i],
		                             wait_kind_words((enum wait_kind)i));
		free(line);
		line = longer;
	}
	if (!ui->filter[0])
		return line;
	char *filtered = memory_printf("only rows with: %s   %s", ui->filter, line);
	free(line);
	return filtered;
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
	int n = 0, history = 0;
	while (history < table->n_columns && table->columns[history].content != TOP_HISTORY)
		history++;
	const int column = history < table->n_columns ? top_table_place(table, history, &n) : -1;

	if (column < 0 || !ui->colours || column + n > sheet->width || sheet->n >= sheet->height) {
		add(sheet, colour, line);
		return;
	}
	_cleanup_free_ char *fitted = top_text_fit(line, sheet->width, false);
	_cleanup_free_ char *before = top_text_fit(line, column, false);
	const size_t start = strlen(before);
	char *row = memory_printf("%s%s", colour, before);
	for (int i = 0; i < n; i++) {
		const char letter = fitted[start + (size_t)i];
		char *longer =
		    memory_printf("%s%s%c", row, colour_of(ui, kind_of_letter(letter)), letter);
		free(row);
		row = longer;
	}
	sheet->rows[sheet->n++] = memory_printf("%s%s%s", row, colour, fitted + start + n);
	free(row);
}

// "--- read(pipe:[4711])  read < fill < main" of the thread at the cursor.
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
	char **names = top_stack(model, thread->sample, TOP_STACK_SHORT, &n);
	_cleanup_free_ char *waits = top_sample_waits(model, thread->sample);
	char *line = memory_printf("---%s%s%s", waits[0] ? " " : "", waits, waits[0] ? " " : "");
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

struct key {
	const char *key, *label;
	int screen;         // is shown on terminals of at least this width
	enum top_view view; // N_TOP_VIEWS: none
};

// In the order of the terminal's columns, as htop's.
static const struct key keys[] = {
    {"1", "Threads", 40, TOP_THREADS},   {"2", "Functions", 40, TOP_FUNCTIONS},
    {"3", "Tree", 40, TOP_TREE},         {"4", "Waits", 40, TOP_WAITS},
    {"5", "Stack", 72, TOP_STACK},       {"F1", "Help", 0, N_TOP_VIEWS},
    {"F3", "Search", 80, N_TOP_VIEWS},   {"F4", "Filter", 80, N_TOP_VIEWS},
    {"F6", "Sort", 64, N_TOP_VIEWS},     {"i", "Idle", 90, N_TOP_VIEWS},
    {"o", "Own code", 100, N_TOP_VIEWS}, {"Space", "Pause", 110, N_TOP_VIEWS},
    {"w", "Window", 110, N_TOP_VIEWS},   {"K", "Kinds", 120, N_TOP_VIEWS},
    {"d", "Dump", 130, N_TOP_VIEWS},     {"S", "Save page", 140, N_TOP_VIEWS},
    {"F10", "Quit", 0, N_TOP_VIEWS},
};

static char *key_text(const struct top_ui *ui, const struct key *key)
{
	const bool is_shown = key->view == ui->view;
	const char *start = !ui->colours ? (is_shown ? "\x1b[1;7m" : "\x1b[7m")
	                    : is_shown   ? "\x1b[1;30;42m"
	                                 : "\x1b[30;46m";

	return memory_printf("%s%s%s\x1b[0m", key->key, start, key->label);
}

// The bar at the bottom; while a text is typed, that.
static void add_keys(const struct top_ui *ui, struct sheet *sheet)
{
	char *bar = NULL;
	int width = 0;

	if (ui->typing) {
		_cleanup_free_ char *prompt = memory_printf(
		    "%s: %s_   Enter: %s   Esc: cancel", ui->typing == '/' ? "Search" : "Filter",
		    ui->text,
		    ui->typing == '/' ? "go to the first row with it" : "show only rows with it");
		add(sheet, "\x1b[7m", prompt);
		return;
	}
	for (size_t i = 0; i < array_size(keys); i++) {
		const int needed =
		    (int)(strlen(keys[i].key) + strlen(keys[i].label)) + (bar != NULL);
		if (sheet->width < keys[i].screen || width + needed > sheet->width)
			continue;
		_cleanup_free_ char *text = key_text(ui, &keys[i]);
		char *longer = memory_printf("%s%s%s", bar ? bar : "", bar ? " " : "", text);
		free(bar);
		bar = longer;
		width += needed;
	}
	if (!bar)
		bar = memory_strdup("");
	sheet->rows[sheet->n++] = bar;
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
		_cleanup_free_ char *line = top_table_line(table, &table->rows[row]);
		if (row == ui->cursor)
			add(sheet, "\x1b[7m", line);
		else
			add_history_row(ui, sheet, table, line, table->rows[row].kind);
	}
	if (has_note) {
		_cleanup_free_ char *note = top_text_cut(table->note, sheet->width);
		add(sheet, "", note);
	}
}

// The titles; the one that the rows are sorted by stands out.
static void add_titles(struct sheet *sheet, const struct top_table *table)
{
	_cleanup_free_ char *line = top_table_line(table, NULL);
	int n = 0;
	const int at = table->sorted_by < 0 ? -1 : top_table_place(table, table->sorted_by, &n);

	if (at < 0 || at + n > sheet->width) {
		add(sheet, "\x1b[1m", line);
		return;
	}
	_cleanup_free_ char *fitted = top_text_fit(line, sheet->width, false);
	// Titles are ASCII, so that columns are bytes.
	sheet->rows[sheet->n++] = memory_printf("\x1b[1m%.*s\x1b[7m%.*s\x1b[27m%s", at, fitted, n,
	                                        fitted + at, fitted + at + n);
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
	                   .shows_all = ui->shows_all,
	                   .hides_idle = !ui->shows_idle,
	                   .is_screen = true,
	                   .width = sheet->width,
	                   .thread = ui->thread,
	                   .opens = ui->opens,
	                   .branches = ui->branches,
	                   .n_branches = ui->n_branches,
	               });
	if (sheet->n < sheet->height)
		add_titles(sheet, &table);
	apply_filter(&table, ui->filter);
	keep_order(ui, &table, model);
	const bool has_stack = ui->view == TOP_THREADS && sheet->height >= MIN_ROWS_FOR_STACK;
	add_table(ui, sheet, &table, has_stack);
	if (has_stack)
		add_stack_line(ui, sheet, model);
	top_table_deinit(&table);
}

char **top_draw_rows(struct top_ui *ui, int width, int height)
{
	struct sheet sheet = {
	    .rows = memory_alloc_zeroed((size_t)height + 1, sizeof(*sheet.rows)),
	    .width = width,
	    .height = height,
	};
	struct top_model model;
	int64_t from_ns, to_ns;

	top_ui_window(ui, &from_ns, &to_ns);
	top_source_look(ui->source, from_ns, to_ns,
	                &(struct top_choice){
	                    .with_tree = ui->view == TOP_TREE,
	                    .hides_idle = !ui->shows_idle,
	                    .shows_all = ui->shows_all,
	                },
	                &model);
	to_ns--;
	_cleanup_free_ char *first = first_line(ui, to_ns);
	_cleanup_free_ char *second = second_line(ui, &model);
	add(&sheet, "\x1b[7m", first);
	if (height > HEAD_ROWS)
		add(&sheet, "", second);
	_cleanup_free_ char *cpu_wait = height > HEAD_ROWS + 2 ? top_cpu_wait(&model) : NULL;
	if (cpu_wait)
		add(&sheet, colour_of(ui, WAIT_KIND_RUNNABLE), cpu_wait);
	_cleanup_free_ char *doubts =
	    height > HEAD_ROWS + 3 ? share_doubts_text(model.input.profile) : NULL;
	if (doubts)
		add(&sheet, colour_of(ui, WAIT_KIND_RUNNABLE), doubts);
	const bool has_keys = height >= MIN_ROWS_FOR_KEYS;
	sheet.height -= has_keys;
	if (ui->shows_help)
		add_help(&sheet);
	else
		add_view(ui, &sheet, &model);
	while (sheet.n < sheet.height)
		add(&sheet, "", "");
	sheet.height = height;
	if (has_keys)
		add_keys(ui, &sheet);
	top_model_deinit(&model);
	return sheet.rows;
}

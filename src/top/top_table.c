// SPDX-License-Identifier: MIT
#include "top_table.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "call_text.h"
#include "frame_name.h"
#include "memory.h"
#include "text.h"
#include "top_layout.h"
#include "top_model.h"
#include "top_own.h"

enum { MAX_NAME_BYTES = 256, MAX_TREE_ROWS = 20000, HOT_PERCENT = 5, HOT_DEPTH = 12 };

static struct top_row *add_row(struct top_table *table, uint64_t id, int kind)
{
	struct top_row *row = array_push(table->rows, table->n_rows, table->capacity);

	*row = (struct top_row){.id = id, .kind = kind};
	return row;
}

static void set_text(struct top_row *row, int column, char *text)
{
	row->cells[column] = text;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static void set_duration(struct top_row *row, int column, int64_t ns)
{
	char text[CALL_TEXT_DURATION_SIZE];

	call_text_duration(ns, text);
	row->keys[column] = (double)ns;
	row->cells[column] = memory_strdup(text);
}

// What a thread does, in a word.
static const char *kind_word(enum wait_kind kind)
{
	return kind == WAIT_KIND_RUNNABLE ? "ready" : wait_kind_name(kind);
}

static void set_number(struct top_row *row, int column, double number, int digits)
{
	row->keys[column] = number;
	row->cells[column] = memory_printf("%.*f", digits, number);
}

// Waits of threads with work for something other than a lock.
static uint64_t io_of(const struct top_share *share)
{
	static const enum wait_kind kinds[] = {
	    WAIT_KIND_CONDITION, WAIT_KIND_FILE,  WAIT_KIND_SOCKET,
	    WAIT_KIND_EVENT,     WAIT_KIND_TIMER, WAIT_KIND_PIPE,
	};
	uint64_t n = 0;

	for (size_t i = 0; i < array_size(kinds); i++)
		n += share->kinds[kinds[i]];
	return n - share->idle;
}

static uint64_t idle_of(const struct top_share *share)
{
	return share->count - share->kinds[WAIT_KIND_RUNNING] - share->kinds[WAIT_KIND_RUNNABLE] -
	       share->kinds[WAIT_KIND_LOCK] - io_of(share);
}

// Returns the column after them.
static int set_shares(struct top_row *row, int column, const struct top_share *share,
                      uint64_t whole, bool all_kinds)
{
	for (int i = 0; all_kinds && i < N_WAIT_KINDS; i++)
		set_number(row, column + i, percent(share->kinds[i], whole), 1);
	if (all_kinds)
		return column + N_WAIT_KINDS;
	set_number(row, column, percent(share->kinds[WAIT_KIND_RUNNING], whole), 1);
	set_number(row, column + 1, percent(share->kinds[WAIT_KIND_RUNNABLE], whole), 1);
	set_number(row, column + 2, percent(share->kinds[WAIT_KIND_LOCK], whole), 1);
	set_number(row, column + 3, percent(io_of(share), whole), 1);
	set_number(row, column + 4, percent(idle_of(share), whole), 1);
	return column + 5;
}

static char *history_text(const struct top_thread *thread)
{
	char text[TOP_HISTORY_CELLS + 1];

	for (int i = 0; i < TOP_HISTORY_CELLS; i++)
		text[i] = top_kind_letter((enum wait_kind)thread->history[i]);
	text[TOP_HISTORY_CELLS] = '\0';
	return memory_strdup(text);
}

static void add_thread(struct top_table *table, const struct top_model *model,
                       const struct top_thread *thread, bool all_kinds)
{
	const struct thread *known = &model->input.profile->threads[thread->thread];
	const char *name = frame_name_thread(known);
	struct top_row *row =
	    add_row(table, thread->thread, thread->sample == TOP_NONE ? -1 : (int)thread->now);
	const bool is_known = thread->sample != TOP_NONE;

	row->weight = (double)(thread->share.count - idle_of(&thread->share));
	set_text(row, 0, text_clean(name, strlen(name), MAX_NAME_BYTES));
	row->keys[1] = known->tid;
	set_text(row, 1, frame_name_number(known));
	set_text(row, 2,
	         memory_strdup(thread->ended ? "ended"
	                       : is_known    ? kind_word(thread->now)
	                                     : "?"));
	set_duration(row, 3, thread->for_ns);
	const int column = set_shares(row, 4, &thread->share, model->n_ticks, all_kinds);
	set_text(row, column, history_text(thread));
	set_text(row, column + 1, is_known ? top_where(model, thread->sample) : memory_strdup(""));
	set_text(row, column + 2,
	         is_known ? top_sample_waits(model, thread->sample) : memory_strdup(""));
}

static bool is_idle(const struct top_model *model, const struct top_thread *thread)
{
	return thread->never_woke && !thread->ended && model->no_work[thread->sample];
}

static char *hidden_note(size_t n_idle, size_t n_ended, bool is_screen)
{
	_cleanup_free_ char *idle =
	    n_idle ? memory_printf(", %zu idle", n_idle) : memory_strdup("");
	_cleanup_free_ char *ended =
	    n_ended ? memory_printf(", %zu ended", n_ended) : memory_strdup("");

	return memory_printf("Not shown:%s%s thread%s%s", n_idle ? idle + 1 : "",
	                     n_idle    ? ended
	                     : n_ended ? ended + 1
	                               : "",
	                     text_plural(n_idle + n_ended), is_screen ? " (i shows them)" : "");
}

static void fill_threads(struct top_table *table, const struct top_model *model,
                         const struct top_table_options *options)
{
	size_t n_idle = 0, n_ended = 0;

	for (size_t i = 0; i < model->n_threads; i++) {
		n_ended += options->is_screen && model->threads[i].ended;
		n_idle += is_idle(model, &model->threads[i]);
	}
	n_ended = n_ended < model->n_threads ? n_ended : 0;
	const bool hides = options->hides_idle && n_idle + n_ended < model->n_threads;
	for (size_t i = 0; i < model->n_threads; i++) {
		const struct top_thread *thread = &model->threads[i];
		if (!hides || !(is_idle(model, thread) || (n_ended > 0 && thread->ended)))
			add_thread(table, model, thread, options->all_kinds);
	}
	if (hides && n_idle + n_ended > 0)
		table->note = hidden_note(n_idle, n_ended, options->is_screen);
}

// What is not counted, and what counts elsewhere.
static char *counted_note(const struct top_model *model, const struct top_table_options *options,
                          const char *folded)
{
	const uint64_t idle = model->share.count - model->n_counted;
	_cleanup_free_ char *share =
	    idle > 0
	        ? memory_printf("Idle time (%.0f %%) is not counted%s.",
	                        percent(idle, model->share.count), options->is_screen ? " (i)" : "")
	        : memory_strdup("");

	if (options->shows_all || !folded)
		return idle > 0 ? memory_strdup(share) : NULL;
	return memory_printf("%s%s%s%s.", share, idle > 0 ? " " : "", folded,
	                     options->is_screen ? " (o)" : "");
}

static void add_function(struct top_table *table, const struct top_model *model,
                         const struct top_function *function,
                         const struct top_table_options *options, char *name)
{
	const uint64_t self = options->shows_all ? function->self : function->own_self;
	struct top_row *row = add_row(table, function->id, -1);

	row->weight = (double)function->total.count;
	set_number(row, 0, percent(self, model->n_counted), 1);
	set_number(row, 1, percent(function->total.count, model->n_counted), 1);
	const int column =
	    set_shares(row, 2, &function->total, model->n_counted, options->all_kinds);
	if (model->hides_idle && !options->all_kinds)
		row->cells[column - 1][0] = '\0'; // IDLE%
	set_number(row, column, (double)self, 0);
	set_text(row, column + 1, name);
}

static void fill_functions(struct top_table *table, const struct top_model *model,
                           const struct top_table_options *options)
{
	const uint64_t elsewhere = model->elsewhere.count;
	const bool own_only = !options->shows_all && elsewhere < model->n_counted;

	for (size_t i = 0; i < model->n_functions; i++) {
		const struct top_function *function = &model->functions[i];
		if (!own_only || top_is_own(&model->input, function->id))
			add_function(table, model, function, options,
			             top_function_place(model, function->id, 0));
	}
	if (own_only && elsewhere > 0)
		add_function(table, model,
		             &(struct top_function){
		                 .id = TOP_NONE, .own_self = elsewhere, .total = model->elsewhere},
		             options, memory_strdup(TOP_ELSEWHERE));
	table->note =
	    counted_note(model, options, own_only ? "Library time counts for its caller" : NULL);
}

static void fill_waits(struct top_table *table, const struct top_model *model,
                       const struct top_table_options *options)
{
	for (size_t i = 0; i < model->n_waits; i++) {
		const struct top_wait *wait = &model->waits[i];
		struct top_row *row =
		    add_row(table, (uint64_t)wait->wait * N_WAIT_KINDS + wait->kind, wait->kind);
		set_number(row, 0, percent(wait->count, model->n_counted), 1);
		set_number(row, 1, (double)wait->count, 0);
		set_number(row, 2, (double)wait->n_threads, 0);
		set_duration(row, 3, wait->longest_ns);
		set_text(row, 4, memory_strdup(kind_word(wait->kind)));
		set_text(row, 5, top_wait_text(top_wait_thing(model, wait)));
		set_text(row, 6, top_wait_holder(model, wait));
		set_text(row, 7, top_where(model, wait->sample));
	}
	table->note = counted_note(model, options, NULL);
}

static bool is_open(const struct top_table_options *options, const struct top_model *model,
                    const struct top_node *node, uint64_t id, int depth)
{
	for (size_t i = 0; i < options->n_branches; i++)
		if (options->branches[i].id == id)
			return options->branches[i].is_open;
	if (options->opens != TOP_OPEN_HOT)
		return options->opens == TOP_OPEN_ALL;
	return depth < HOT_DEPTH && !top_is_elsewhere(&model->input, node->id) &&
	       node->total * 100 >= model->n_counted * HOT_PERCENT;
}

// A number for the path from the root, the same while the names' ids are.
static uint64_t path_id(uint64_t parent, uint32_t id)
{
	return (parent ^ id) * 0x9e3779b97f4a7c15u + 1;
}

struct tree_walk {
	struct top_table *table;
	const struct top_model *model;
	const struct top_table_options *options;
};

static int compare_nodes(const void *a_pointer, const void *b_pointer, void *context)
{
	const struct top_model *model = context;
	const struct top_node *a = &model->nodes[*(const uint32_t *)a_pointer];
	const struct top_node *b = &model->nodes[*(const uint32_t *)b_pointer];

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

static void add_nodes(const struct tree_walk *walk, uint32_t parent, uint64_t parent_id, int depth)
{
	const struct top_model *model = walk->model;
	uint32_t *children = NULL;
	size_t n = 0, capacity = 0;

	for (uint32_t i = model->nodes[parent].first_child; i != TOP_NONE;
	     i = model->nodes[i].next_sibling)
		*array_push(children, n, capacity) = i;
	if (n > 1)
		qsort_r(children, n, sizeof(*children), compare_nodes, (void *)model);
	for (size_t i = 0; i < n && walk->table->n_rows < MAX_TREE_ROWS; i++) {
		const struct top_node *node = &model->nodes[children[i]];
		const uint64_t id = path_id(parent_id, node->id);
		const bool opens = is_open(walk->options, model, node, id, depth);
		struct top_row *row = add_row(walk->table, id, -1);
		_cleanup_free_ char *name = top_function_place(model, node->id, 0);
		row->is_open = opens;
		set_number(row, 0, percent(node->total, model->n_counted), 1);
		set_number(row, 1, percent(node->self, model->n_counted), 1);
		set_text(row, 2,
		         memory_printf("%*s%c %s", depth, "",
		                       node->first_child == TOP_NONE ? ' '
		                       : opens                       ? '-'
		                                                     : '+',
		                       name));
		if (opens)
			add_nodes(walk, children[i], id, depth + 1);
	}
	free(children);
}

static void fill_tree(struct top_table *table, const struct top_model *model,
                      const struct top_table_options *options)
{
	const struct tree_walk walk = {table, model, options};

	if (model->n_nodes > 0)
		add_nodes(&walk, 0, 0, 0);
	table->note = counted_note(model, options, "Frames around your code are folded");
}

static void fill_stack(struct top_table *table, const struct top_model *model,
                       const struct top_table_options *options)
{
	const uint64_t id = options->thread;
	const struct top_thread *thread = NULL;

	for (size_t i = 0; i < model->n_threads; i++)
		if (model->threads[i].thread == id)
			thread = &model->threads[i];
	if (!thread || thread->sample == TOP_NONE) {
		table->note = memory_strdup("it was not seen in this window");
		return;
	}
	size_t n;
	char **names = top_stack(model, thread->sample, TOP_STACK_PLACES, &n);
	for (size_t i = 0; i < n; i++)
		set_text(add_row(table, i, thread->now), 0, names[i]);
	free(names);
	const struct thread *known = &model->input.profile->threads[id];
	const char *name = frame_name_thread(known);
	_cleanup_free_ char *number = frame_name_number(known);
	_cleanup_free_ char *clean = text_clean(name, strlen(name), MAX_NAME_BYTES);
	_cleanup_free_ char *call = top_sample_waits(model, thread->sample);
	char duration[CALL_TEXT_DURATION_SIZE];
	call_text_duration(thread->for_ns, duration);
	table->note = memory_printf("\"%s\" %s   %s, %s   %s", clean, number,
	                            wait_kind_words(thread->now), duration, call);
}

// clang-format off
#define NUMBER(title, width) {(title), (width), TOP_NUMBER, 0, false}
#define WIDE_NUMBER(title, width, screen) {(title), (width), TOP_NUMBER, (screen), false}
#define SHARES(screen)                                                                             \
	WIDE_NUMBER("READY%", 6, screen), WIDE_NUMBER("LOCK%", 5, screen),                         \
	WIDE_NUMBER("I/O%", 5, screen), {"IDLE%", 5, TOP_NUMBER, (screen), true}

// In the order of enum wait_kind.
#define KINDS                                                                                      \
	NUMBER("READY%", 6), NUMBER("LOCK%", 5), NUMBER("COND%", 5), NUMBER("FILE%", 5),           \
	NUMBER("SOCK%", 5), NUMBER("EVENT%", 6), NUMBER("TIMER%", 6), NUMBER("PIPE%", 5),          \
	NUMBER("STOP%", 5)
#define THREAD_COLUMNS(...)                                                                        \
	{"THREAD", 20, TOP_NAME, 0, false}, NUMBER("TID", 3), {"NOW", 9, TOP_WORD, 0, false},      \
	NUMBER("FOR", 7), NUMBER("RUN%", 5), __VA_ARGS__,                                          \
	{"LAST", TOP_HISTORY_CELLS, TOP_HISTORY, 60, false}, {"WHERE", 3, TOP_TEXT, 0, false},     \
	{"WAITS FOR {LABELS}", 4, TOP_TEXT, 100, false}
#define FUNCTION_COLUMNS(...)                                                                      \
	NUMBER("SELF%", 5), NUMBER("TOTAL%", 6), NUMBER("RUN%", 5), __VA_ARGS__,                   \
	WIDE_NUMBER("SAMPLES", 8, 110), {"FUNCTION", 1, TOP_TEXT, 0, false}

static const struct top_column thread_columns[] = {THREAD_COLUMNS(SHARES(125))};
static const struct top_column thread_kind_columns[] = {THREAD_COLUMNS(KINDS)};
static const struct top_column function_columns[] = {FUNCTION_COLUMNS(SHARES(60))};
static const struct top_column function_kind_columns[] = {FUNCTION_COLUMNS(KINDS)};
static const struct top_column tree_columns[] = {
	NUMBER("TOTAL%", 6), NUMBER("SELF%", 5), {"CALLS", 1, TOP_TEXT, 0, false},
};
static const struct top_column wait_columns[] = {
	NUMBER("WAITS%", 6), WIDE_NUMBER("SAMPLES", 8, 110), NUMBER("THREADS", 7), NUMBER("LONGEST", 7),
	{"KIND", 9, TOP_WORD, 0, false}, {"FOR", 5, TOP_TEXT, 0, false},
	{"HELD BY", 4, TOP_TEXT, 0, true}, {"WHERE", 5, TOP_TEXT, 0, false},
};
_Static_assert(array_size(((struct top_column[]){KINDS})) + 1 == N_WAIT_KINDS, "a heading for each");
_Static_assert(array_size(thread_kind_columns) <= TOP_MAX_COLUMNS, "cells");
_Static_assert(array_size(function_kind_columns) <= TOP_MAX_COLUMNS, "cells");
static const struct top_column stack_columns[] = {{"STACK", 1, TOP_TEXT, 0, false}};
// clang-format on

struct view {
	const char *name;
	const struct top_column *columns;
	int n_columns;
	int sorted_by; // -1: the order is the view's meaning
	void (*fill)(struct top_table *table, const struct top_model *model,
	             const struct top_table_options *options);
};

static const struct view views[N_TOP_VIEWS] = {
    [TOP_THREADS] = {"threads", thread_columns, array_size(thread_columns), 4, fill_threads},
    [TOP_FUNCTIONS] = {"functions", function_columns, array_size(function_columns), 0,
                       fill_functions},
    [TOP_TREE] = {"tree", tree_columns, array_size(tree_columns), -1, fill_tree},
    [TOP_WAITS] = {"waits", wait_columns, array_size(wait_columns), 0, fill_waits},
    [TOP_STACK] = {"stack", stack_columns, array_size(stack_columns), -1, fill_stack},
};

// The same with a column for each kind, of those views that have shares.
static const struct view kind_views[] = {
    [TOP_THREADS] = {"threads", thread_kind_columns, array_size(thread_kind_columns), 4,
                     fill_threads},
    [TOP_FUNCTIONS] = {"functions", function_kind_columns, array_size(function_kind_columns), 0,
                       fill_functions},
};

static const struct view *find_view(enum top_view view, bool all_kinds)
{
	return all_kinds && view < array_size(kind_views) ? &kind_views[view] : &views[view];
}

const char *top_view_name(enum top_view view)
{
	return views[view].name;
}

enum top_view top_view_named(const char *name)
{
	for (int i = 0; i < N_TOP_VIEWS; i++)
		if (strcmp(views[i].name, name) == 0)
			return (enum top_view)i;
	return N_TOP_VIEWS;
}

int top_view_column(enum top_view view, const char *name)
{
	const size_t length = strlen(name);

	for (int i = 0; i < views[view].n_columns && views[view].sorted_by >= 0; i++) {
		const char *title = views[view].columns[i].title;
		if (length > 0 && strncasecmp(title, name, length) == 0)
			return i;
	}
	return -1;
}

struct order {
	int column;
	bool is_number, is_reversed;
};

static int compare_rows(const void *a_pointer, const void *b_pointer, void *context)
{
	const struct top_row *a = a_pointer, *b = b_pointer;
	const struct order *order = context;
	int result = order->is_number ? (a->keys[order->column] < b->keys[order->column]) -
	                                    (a->keys[order->column] > b->keys[order->column])
	                              : strcmp(a->cells[order->column], b->cells[order->column]);

	if (result == 0)
		result = (a->weight < b->weight) - (a->weight > b->weight);
	if (result == 0)
		return (a->id > b->id) - (a->id < b->id);
	return order->is_reversed ? -result : result;
}

int top_view_next_column(enum top_view view, bool all_kinds, int column)
{
	const struct view *known = find_view(view, all_kinds);

	if (known->sorted_by < 0)
		return -1;
	return (column < 0 ? known->sorted_by + 1 : column + 1) % known->n_columns;
}

void top_table_init(struct top_table *ret, const struct top_model *model,
                    const struct top_table_options *options)
{
	const struct view *view = find_view(options->view, options->all_kinds);

	*ret = (struct top_table){
	    .columns = view->columns,
	    .n_columns = view->n_columns,
	    .sorted_by = view->sorted_by,
	};
	view->fill(ret, model, options);
	ret->n_shown = ret->n_rows;
	top_layout(ret, options->width);
	if (ret->sorted_by < 0 || ret->n_rows == 0)
		return;
	if (options->sort_by >= 0 && options->sort_by < ret->n_columns)
		ret->sorted_by = options->sort_by;
	struct order order = {
	    .column = ret->sorted_by,
	    .is_number = ret->columns[ret->sorted_by].content == TOP_NUMBER,
	    .is_reversed = options->is_reversed,
	};
	qsort_r(ret->rows, ret->n_rows, sizeof(*ret->rows), compare_rows, &order);
}

void top_table_deinit(struct top_table *table)
{
	for (size_t i = 0; i < table->n_rows; i++)
		for (int j = 0; j < TOP_MAX_COLUMNS; j++)
			free(table->rows[i].cells[j]);
	free(table->rows);
	free(table->note);
	*table = (struct top_table){0};
}

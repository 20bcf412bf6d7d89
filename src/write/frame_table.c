// SPDX-License-Identifier: MIT
#include "frame_table.h"

#include <stdlib.h>
#include <string.h>

#include "frame_name.h"
#include "labels.h"
#include "memory.h"
#include "module.h"
#include "own_code.h"
#include "symbolize.h"
#include "writer.h"

void frame_table_init(struct frame_table *table, const struct report *report)
{
	const struct profile *profile = report->profile;

	*table = (struct frame_table){.report = report};
	table->locations = memory_alloc_zeroed(profile->n_locations + 1, sizeof(*table->locations));
	table->waits = memory_alloc_zeroed(profile->n_waits + 1, sizeof(*table->waits));
	table->labels = memory_alloc_zeroed(profile->n_labels + 1, sizeof(*table->labels));
}

void frame_table_deinit(struct frame_table *table)
{
	string_table_deinit(&table->strings);
	free(table->functions);
	free(table->frames);
	hash_index_deinit(&table->function_index);
	hash_index_deinit(&table->frame_index);
	free(table->ids);
	free(table->locations);
	free(table->waits);
	free(table->labels);
	free(table->stack);
	*table = (struct frame_table){0};
}

static uint32_t add_function(struct frame_table *table, const struct frame_function *function)
{
	return hash_intern(&table->function_index, table->functions, table->n_functions,
	                   table->functions_capacity, *function,
	                   offsetof(struct frame_function, own));
}

static void push_frame(struct frame_table *table, const struct frame_function *function,
                       uint32_t line)
{
	const struct frame frame = {.function = add_function(table, function), .line = line};
	const uint32_t id = hash_intern(&table->frame_index, table->frames, table->n_frames,
	                                table->frames_capacity, frame, sizeof(frame));

	*array_push(table->ids, table->n_ids, table->ids_capacity) = id;
}

// Adds a frame that the profiler itself names; takes over `name`.
static void push_named(struct frame_table *table, char *name, enum frame_kind kind)
{
	const struct frame_function function = {
	    .name = string_table_intern_clean(&table->strings, name),
	    .file = string_table_intern(&table->strings, ""),
	    .module = string_table_intern(&table->strings, ""),
	    .kind = kind,
	};

	free(name);
	push_frame(table, &function, 0);
}

static void push_line(struct frame_table *table, const struct line *line,
                      const struct module *module, bool inlined)
{
	const struct function *function = &table->report->symbols->functions[line->function];
	const struct frame_function own = {
	    .name = string_table_intern(&table->strings, function->name),
	    .file = string_table_intern(&table->strings, function->file ? function->file : ""),
	    .module = string_table_intern_clean(&table->strings, module->path),
	    .start_line = function->start_line,
	    .kind = inlined ? FRAME_INLINED : FRAME_CODE,
	    .own = own_code_function(module, function),
	};

	push_frame(table, &own, line->line);
}

static void push_unresolved(struct frame_table *table, const struct module *module,
                            uint64_t address)
{
	_cleanup_free_ char *name = frame_name_unresolved(module, address);
	const struct frame_function function = {
	    .name = string_table_intern_clean(&table->strings, name),
	    .file = string_table_intern(&table->strings, ""),
	    .module = string_table_intern_clean(&table->strings, module->path),
	    .kind = FRAME_CODE,
	    .own = own_code_function(module, NULL),
	};

	push_frame(table, &function, 0);
}

static void add_location(struct frame_table *table, uint32_t id)
{
	const struct report *report = table->report;
	const struct location *location = &report->profile->locations[id];
	const struct location_lines *lines = &report->symbols->locations[id];
	const struct module *module = report->modules->items[location->module];
	struct frame_list *list = &table->locations[id];

	if (list->count > 0)
		return;
	list->first = table->n_ids;
	for (uint32_t i = lines->count; i-- > 0;)
		push_line(table, &report->symbols->lines[lines->first + i], module,
		          i + 1 < lines->count);
	if (lines->count == 0)
		push_unresolved(table, module, location->address);
	list->count = (uint32_t)(table->n_ids - list->first);
}

static void add_wait(struct frame_table *table, uint32_t id)
{
	const struct report *report = table->report;
	struct frame_list *list = &table->waits[id];
	size_t n = 0;

	if (id == WAIT_NONE || list->count > 0)
		return;
	list->first = table->n_ids;
	for (char *name; (name = frame_name_wait(&report->profile->waits[id], report->syscalls, n));
	     n++)
		push_named(table, name, FRAME_KERNEL);
	for (size_t i = 0; i < n / 2; i++) { // they came leaf first
		uint32_t *a = &table->ids[list->first + i], *b = &table->ids[table->n_ids - 1 - i];
		const uint32_t frame = *a;
		*a = *b;
		*b = frame;
	}
	list->count = (uint32_t)n;
}

// Those of the set's labels that are root frames.
static void add_labels(struct frame_table *table, uint32_t id)
{
	const struct report *report = table->report;
	struct frame_list *list = &table->labels[id];

	if (id == LABELS_NONE || !report->label_frames || list->count > 0)
		return;
	list->first = table->n_ids;
	for (const char *const *key = report->label_frames; *key; key++) {
		char *name = frame_name_label(report->profile->labels[id], *key);
		if (name)
			push_named(table, name, FRAME_LABEL);
	}
	list->count = (uint32_t)(table->n_ids - list->first);
}

static void add_end(struct frame_table *table, enum stack_end end)
{
	struct frame_list *list = &table->ends[end];

	if (end == STACK_COMPLETE || list->count > 0)
		return;
	list->first = table->n_ids;
	push_named(table, frame_name_truncated(end), FRAME_END);
	list->count = 1;
}

void frame_table_add(struct frame_table *table, const struct sample *sample)
{
	const struct profile *profile = table->report->profile;
	const struct stack *stack = &profile->stacks[sample->stack];

	add_labels(table, sample->labels);
	add_end(table, frame_name_stack_end(stack));
	for (uint32_t i = stack->n_frames; i-- > 0;)
		add_location(table, profile->location_ids[stack->first + i]);
	add_wait(table, sample_leaf_wait(profile, sample));
}

struct frame_walk frame_walk_begin(const struct frame_table *table, const struct sample *sample)
{
	const struct profile *profile = table->report->profile;
	const struct stack *stack = &profile->stacks[sample->stack];

	return (struct frame_walk){
	    .table = table,
	    .locations = stack->n_frames ? profile->location_ids + stack->first : NULL,
	    .n_locations = stack->n_frames,
	    .labels = sample->labels,
	    .end = frame_name_stack_end(stack),
	    .wait = sample_leaf_wait(profile, sample),
	};
}

// Returns the frames of the walk's part: labels, the stack's end, its locations, the wait. NULL:
// there are no more parts.
static const struct frame_list *frames_of_part(const struct frame_walk *walk)
{
	enum { LABELS, END, FIRST_LOCATION };
	const struct frame_table *table = walk->table;

	if (walk->part == LABELS)
		return &table->labels[walk->labels];
	if (walk->part == END)
		return &table->ends[walk->end];
	const uint32_t i = walk->part - FIRST_LOCATION;
	if (i < walk->n_locations)
		return &table->locations[walk->locations[walk->n_locations - 1 - i]];
	return i == walk->n_locations ? &table->waits[walk->wait] : NULL;
}

bool frame_walk_next(struct frame_walk *walk, uint32_t *ret_frame)
{
	const struct frame_list *list;

	for (; (list = frames_of_part(walk)); walk->part++, walk->n_read = 0)
		if (walk->n_read < list->count) {
			*ret_frame = walk->table->ids[list->first + walk->n_read++];
			return true;
		}
	return false;
}

void frame_walk_skip_common(struct frame_walk *a, struct frame_walk *b)
{
	const struct frame_list *list;

	while ((list = frames_of_part(a)) && list == frames_of_part(b)) {
		a->part++;
		b->part++;
	}
}

const uint32_t *frame_table_stack(struct frame_table *table, const struct sample *sample,
                                  size_t *ret_count)
{
	uint32_t frame;
	size_t n = 0;

	frame_table_add(table, sample);
	struct frame_walk walk = frame_walk_begin(table, sample);
	while (frame_walk_next(&walk, &frame))
		*array_push(table->stack, n, table->stack_capacity) = frame;
	*ret_count = n;
	return table->stack;
}

const char *frame_table_string(const struct frame_table *table, uint32_t string)
{
	return table->strings.items[string];
}

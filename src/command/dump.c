// SPDX-License-Identifier: MIT
#include "dump.h"

#include <stdlib.h>
#include <string.h>

#include "frame_name.h"
#include "memory.h"
#include "own_code.h"
#include "sample_kind.h"
#include "sample_work.h"
#include "text.h"

enum { MAX_NAME_BYTES = 64 };

void dump_deinit(struct dump *dump)
{
	for (size_t i = 0; i < dump->n_threads; i++) {
		free(dump->threads[i].name);
		free(dump->threads[i].call);
		free(dump->threads[i].holder);
	}
	free(dump->threads);
	free(dump->command);
	free(dump->host);
	*dump = (struct dump){0};
}

struct dump_thread *dump_add(struct dump *dump, uint32_t sample)
{
	const uint32_t id = dump->profile->samples[sample].thread;
	const char *name = dump->profile->threads[id].name;
	struct dump_thread *thread = array_push(dump->threads, dump->n_threads, dump->capacity);

	*thread = (struct dump_thread){
	    .thread = id,
	    .sample = sample,
	    .blocked_ns = -1,
	    .name = text_clean(name, strlen(name), MAX_NAME_BYTES),
	};
	return thread;
}

void dump_find_kinds(struct dump *dump)
{
	struct sample_work *work = sample_work_create(dump->profile, dump->modules, dump->symbols);
	struct sample_kinds kinds;

	sample_kinds_init(&kinds, dump->profile, dump->symbols);
	for (size_t i = 0; i < dump->n_threads; i++) {
		struct dump_thread *thread = &dump->threads[i];
		const struct sample *sample = &dump->profile->samples[thread->sample];
		thread->kind = sample_kind(&kinds, sample);
		thread->is_idle = sample_has_no_work(work, sample, thread->kind);
	}
	sample_kinds_deinit(&kinds);
	sample_work_destroy(work);
}

static int rank_of(const struct dump_thread *thread)
{
	if (!wait_kind_is_blocked(thread->kind))
		return 0;
	return thread->is_idle ? 2 : 1;
}

bool dump_is_blocked(const struct dump_thread *thread, int64_t ns)
{
	return thread->blocked_ns > ns && wait_kind_is_blocked(thread->kind) && !thread->is_idle;
}

static int compare(const void *a_pointer, const void *b_pointer)
{
	const struct dump_thread *a = a_pointer, *b = b_pointer;

	if (rank_of(a) != rank_of(b))
		return rank_of(a) - rank_of(b);
	if (a->blocked_ns != b->blocked_ns)
		return a->blocked_ns > b->blocked_ns ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

void dump_sort(struct dump *dump)
{
	if (dump->n_threads > 0)
		qsort(dump->threads, dump->n_threads, sizeof(*dump->threads), compare);
}

const struct thread *dump_thread_of(const struct dump *dump, const struct dump_thread *thread)
{
	return &dump->profile->threads[thread->thread];
}

// The address in the process; 0: no mapping of the module holds it.
static uint64_t address_of(const struct module *module, uint64_t address)
{
	for (size_t i = 0; i < module->n_mappings; i++) {
		const struct module_mapping *mapping = &module->mappings[i];
		if (address + mapping->bias >= mapping->start &&
		    address + mapping->bias < mapping->end)
			return address + mapping->bias;
	}
	return 0;
}

struct visitor {
	void (*visit)(void *context, const struct dump_frame *frame);
	void *context;
};

// Takes the name over.
static void visit_named(const struct visitor *visitor, struct dump_frame frame, char *name)
{
	frame.name = name;
	visitor->visit(visitor->context, &frame);
	free(name);
}

static void visit_location(const struct dump *dump, uint32_t id, const struct visitor *visitor)
{
	const struct location *location = &dump->profile->locations[id];
	const struct location_lines *lines = &dump->symbols->locations[id];
	const struct module *module = dump->modules->items[location->module];
	struct dump_frame frame = {
	    .file = "",
	    .module = module->path,
	    .offset = location->address,
	    .address = address_of(module, location->address),
	};

	if (lines->count == 0)
		visit_named(visitor, frame, frame_name_unresolved(module, location->address));
	for (uint32_t i = 0; i < lines->count; i++) {
		const struct line *line = &dump->symbols->lines[lines->first + i];
		const struct function *function = &dump->symbols->functions[line->function];
		frame.file = function->file ? function->file : "";
		frame.line = line->line;
		frame.is_inlined = i + 1 < lines->count;
		frame.is_own = own_code_function(module, function);
		visit_named(visitor, frame, memory_strdup(function->name));
	}
}

// A recording may have any bytes for them.
static void visit_kernel(const struct wait *wait, const struct visitor *visitor)
{
	for (size_t i = 0;; i++) {
		_cleanup_free_ char *name = frame_name_wait(wait, false, i);
		if (!name)
			return;
		visit_named(visitor, (struct dump_frame){.file = "", .module = ""},
		            text_clean(name, strlen(name), TEXT_UNLIMITED));
	}
}

void dump_frames(const struct dump *dump, uint32_t id,
                 void (*visit)(void *context, const struct dump_frame *frame), void *context)
{
	const struct visitor visitor = {visit, context};
	const struct profile *profile = dump->profile;
	const struct sample *sample = &profile->samples[id];
	const struct stack *stack = &profile->stacks[sample->stack];

	if (sample->wait != WAIT_NONE)
		visit_kernel(&profile->waits[sample->wait], &visitor);
	for (uint32_t i = 0; i < stack->n_frames; i++)
		visit_location(dump, profile->location_ids[stack->first + i], &visitor);
	const enum stack_end end = frame_name_stack_end(stack);
	if (end != STACK_COMPLETE)
		visit_named(&visitor, (struct dump_frame){.file = "", .module = ""},
		            frame_name_truncated(end));
}

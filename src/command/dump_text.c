// SPDX-License-Identifier: MIT
#include "dump_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "call_text.h"
#include "dump.h"
#include "dump_problems.h"
#include "frame_name.h"
#include "language_text.h"
#include "memory.h"
#include "short_name.h"
#include "summary.h"
#include "text.h"
#include "time_point.h"

enum {
	MAX_NAME_COLUMN = 44,
	MAX_INNER_FRAMES = 60, // of a stack, without --all-frames; and of the outermost ones
	MAX_OUTER_FRAMES = 20,
	MAX_NAMED = 24, // threads of a group
	MAX_SHOWN_TIMES = 4,
	MAX_WAIT_GROUPS = 16,
	MAX_PATH_BYTES = 256,
	INDENT = 4,
};

struct text_frame {
	char *name, *place; // place: "file.c:12  module"; "": not known
	bool is_root;       // of those that every thread has
};

struct text_stack {
	struct text_frame *frames;
	size_t count, capacity;
	bool whole_names;
	char *last_module; // that was shown
};

static bool is_root(const char *name)
{
	static const char *const names[] = {
	    "start_thread", "clone3",        "__clone3",          "clone",
	    "__clone",      "_start",        "__libc_start_main", "__libc_start_call_main",
	    "__GI___clone", "__GI___clone3",
	};

	for (size_t i = 0; i < array_size(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return text_begins_with(name, "__libc_start_main");
}

// Names of C++ with their template arguments may take many lines.
static char *name_of(const struct text_stack *stack, const char *name)
{
	return stack->whole_names || strlen(name) <= MAX_NAME_COLUMN ? memory_strdup(name)
	                                                             : short_name(name);
}

static void add_frame(void *context, const struct dump_frame *frame)
{
	struct text_stack *stack = context;
	_cleanup_free_ char *module =
	    text_clean(frame->module, strlen(frame->module), MAX_PATH_BYTES);
	const bool is_new =
	    module[0] && (!stack->last_module || strcmp(module, stack->last_module) != 0);
	_cleanup_free_ char *line = frame->line ? memory_printf(":%" PRIu32, frame->line) : NULL;
	const bool has_file = frame->file[0] != '\0';

	*array_push(stack->frames, stack->count, stack->capacity) = (struct text_frame){
	    .name = name_of(stack, frame->name),
	    .place =
	        memory_printf("%s%s%s%s%s", has_file ? text_base_name(frame->file) : "",
	                      has_file && line ? line : "", frame->is_inlined ? " (inlined)" : "",
	                      is_new && has_file ? "  " : "", is_new ? text_base_name(module) : ""),
	    .is_root = is_root(frame->name),
	};
	if (is_new) {
		free(stack->last_module);
		stack->last_module = take_pointer(module);
	}
}

static void text_stack_deinit(struct text_stack *stack)
{
	for (size_t i = 0; i < stack->count; i++) {
		free(stack->frames[i].name);
		free(stack->frames[i].place);
	}
	free(stack->frames);
	free(stack->last_module);
}

static void put_frame(const struct text_frame *frame, int width, FILE *stream)
{
	if (frame->place[0])
		fprintf(stream, "%*s%-*s  %s\n", INDENT, "", width, frame->name, frame->place);
	else
		fprintf(stream, "%*s%s\n", INDENT, "", frame->name);
}

// The columns that names take.
static int name_column(const struct text_stack *stack)
{
	size_t width = 0;

	for (size_t i = 0; i < stack->count; i++) {
		const size_t length = strlen(stack->frames[i].name);
		if (length > width && length <= MAX_NAME_COLUMN)
			width = length;
	}
	return (int)width;
}

// start_thread, clone3: all on one line.
static void put_roots(const struct text_stack *stack, size_t first, FILE *stream)
{
	for (size_t i = first; i < stack->count; i++)
		fprintf(stream, "%*s%s%s", i == first ? INDENT : 0, "", stack->frames[i].name,
		        i + 1 < stack->count ? ", " : "\n");
}

static void put_stack(const struct dump *dump, uint32_t sample, bool all_frames, FILE *stream)
{
	struct text_stack stack = {.whole_names = all_frames};

	dump_frames(dump, sample, add_frame, &stack);
	size_t n = stack.count;
	while (!all_frames && n > 1 && stack.frames[n - 1].is_root)
		n--;
	const bool cut = !all_frames && n > MAX_INNER_FRAMES + MAX_OUTER_FRAMES + 1;
	const int width = name_column(&stack);
	for (size_t i = 0; i < n; i++) {
		if (cut && i == MAX_INNER_FRAMES) {
			const size_t left_out = n - MAX_INNER_FRAMES - MAX_OUTER_FRAMES;
			fprintf(stream, "%*s... %zu frames (--all-frames shows them) ...\n", INDENT,
			        "", left_out);
			i += left_out;
		}
		put_frame(&stack.frames[i], width, stream);
	}
	put_roots(&stack, n, stream);
	text_stack_deinit(&stack);
}

static bool is_same_group(const struct dump *dump, const struct dump_thread *a,
                          const struct dump_thread *b)
{
	const struct sample *x = &dump->profile->samples[a->sample];
	const struct sample *y = &dump->profile->samples[b->sample];

	if (!a->holder != !b->holder || (a->holder && strcmp(a->holder, b->holder) != 0))
		return false;
	return x->stack == y->stack && x->state == y->state && a->kind == b->kind &&
	       a->unmoved == b->unmoved &&
	       dump_thread_of(dump, a)->is_task == dump_thread_of(dump, b)->is_task;
}

// Threads that are shown together, as positions in dump->threads.
struct group {
	size_t *members;
	size_t count, capacity;
};

static bool has_many_processes(const struct dump *dump)
{
	for (size_t i = 0; i < dump->n_threads; i++)
		if (dump_thread_of(dump, &dump->threads[i])->pid != dump->pid)
			return true;
	return false;
}

static bool has_tasks(const struct dump *dump, const struct group *group)
{
	return dump_thread_of(dump, &dump->threads[group->members[0]])->is_task;
}

static uint32_t labels_of(const struct dump *dump, const struct group *group, size_t i)
{
	return dump->profile->samples[dump->threads[group->members[i]].sample].labels;
}

static bool has_same_labels(const struct dump *dump, const struct group *group)
{
	for (size_t i = 1; i < group->count; i++)
		if (labels_of(dump, group, i) != labels_of(dump, group, 0))
			return false;
	return true;
}

static void put_labels(const struct dump *dump, const struct dump_thread *thread, FILE *stream)
{
	_cleanup_free_ char *labels =
	    frame_name_labels(dump->profile, &dump->profile->samples[thread->sample]);

	if (labels)
		fprintf(stream, " {%s}", labels);
}

static void put_names(const struct dump *dump, const struct group *group, FILE *stream)
{
	const bool many = has_many_processes(dump), same = has_same_labels(dump, group);

	const char *last_name = NULL; // is not written again

	for (size_t i = 0; i < group->count; i++) {
		const struct dump_thread *thread = &dump->threads[group->members[i]];
		const struct thread *entry = dump_thread_of(dump, thread);
		const bool is_named = last_name && strcmp(thread->name, last_name) == 0;
		if (i == MAX_NAMED) {
			fprintf(stream, " and %zu more", group->count - i);
			break;
		}
		fprintf(stream, "%s", i ? ", " : "");
		if (!is_named)
			fprintf(stream, "\"%s\" %s%s", thread->name,
			        entry->is_task ? language_tasks(1) : "", entry->is_task ? " " : "");
		if (entry->is_task)
			fprintf(stream, "%" PRIu64, entry->task_id);
		else
			fprintf(stream, "%d", entry->tid);
		if (many)
			fprintf(stream, " (of %d)", entry->pid);
		if (!same)
			put_labels(dump, thread, stream);
		last_name = thread->name;
	}
	if (group->count > 1)
		fprintf(stream, ": %zu %s, same stack", group->count,
		        has_tasks(dump, group) ? language_tasks(group->count) : "threads");
	if (same)
		put_labels(dump, &dump->threads[group->members[0]], stream);
}

static void put_times(const struct dump *dump, const struct group *group, FILE *stream)
{
	int64_t least_ns = INT64_MAX, most_ns = -1;
	size_t n_shown = 0;
	char text[CALL_TEXT_DURATION_SIZE];

	for (size_t i = 0; i < group->count; i++) {
		const int64_t ns = dump->threads[group->members[i]].blocked_ns;
		if (ns < 0)
			continue;
		least_ns = ns < least_ns ? ns : least_ns;
		most_ns = ns > most_ns ? ns : most_ns;
		if (group->count > MAX_SHOWN_TIMES)
			continue;
		call_text_duration(ns, text);
		fprintf(stream, "%s%s%s", n_shown++ ? " / " : ", ", text,
		        has_tasks(dump, group) ? " or more" : "");
	}
	if (group->count <= MAX_SHOWN_TIMES || most_ns < 0)
		return;
	char most[CALL_TEXT_DURATION_SIZE];
	call_text_duration(least_ns, text);
	call_text_duration(most_ns, most);
	const bool is_one = strcmp(text, most) == 0;
	fprintf(stream, ", %s%s%s%s", is_one ? "" : text, is_one ? "" : " to ", most,
	        has_tasks(dump, group) ? " or more" : "");
}

// The call of all of them; of different ones only its name.
static void put_call(const struct dump *dump, const struct group *group, FILE *stream)
{
	const char *first = dump->threads[group->members[0]].call;
	bool same = true;

	for (size_t i = 1; i < group->count; i++) {
		const char *call = dump->threads[group->members[i]].call;
		if (!first || !call)
			same &= first == call;
		else
			same &= strcmp(call, first) == 0;
	}
	if (first && same)
		fprintf(stream, "   %s", first);
	else if (first)
		fprintf(stream, "   %.*s(...)", (int)strcspn(first, "("), first);
}

static void put_group(const struct dump *dump, const struct group *group, bool all_frames,
                      FILE *stream)
{
	const struct dump_thread *first = &dump->threads[group->members[0]];
	const enum thread_state state = dump->profile->samples[first->sample].state;

	fputc('\n', stream);
	put_names(dump, group, stream);
	fprintf(stream, "   %s%s", wait_kind_words(first->kind),
	        state == THREAD_DISK ? " (disk sleep)" : "");
	put_times(dump, group, stream);
	put_call(dump, group, stream);
	if (first->holder)
		fprintf(stream, "   %s", first->holder);
	fputs(first->unmoved ? "   not run since the last dump\n" : "\n", stream);
	put_stack(dump, first->sample, all_frames, stream);
}

static size_t count_tasks(const struct dump *dump)
{
	size_t n = 0;

	for (size_t i = 0; i < dump->n_threads; i++)
		n += dump_thread_of(dump, &dump->threads[i])->is_task;
	return n;
}

static void put_head(const struct dump *dump, FILE *stream)
{
	const size_t n_tasks = count_tasks(dump);
	const size_t n_threads = dump->n_threads - n_tasks;
	char time[TIME_POINT_TEXT_SIZE], up[CALL_TEXT_DURATION_SIZE];

	time_point_format(dump->time_ns, false, time);
	fprintf(stream, "%s     pid %d, ", dump->command, dump->pid);
	if (n_tasks > 0)
		fprintf(stream, "%zu %s, ", n_tasks, language_tasks(n_tasks));
	fprintf(stream, "%zu thread%s", n_threads, n_threads == 1 ? "" : "s");
	if (dump->up_ns >= 0) {
		call_text_duration(dump->up_ns, up);
		fprintf(stream, ", up %s", up);
	}
	fprintf(stream, ", host %s, %s, profiler " PROFILER_VERSION "\n", dump->host, time);
}

// Names the one that has waited longest.
static void put_blocked(const struct dump *dump, int64_t blocked_ns, FILE *stream)
{
	const struct dump_thread *longest = NULL;
	char duration[CALL_TEXT_DURATION_SIZE];
	size_t n = 0;

	for (size_t i = 0; blocked_ns > 0 && i < dump->n_threads; i++) {
		const struct dump_thread *thread = &dump->threads[i];
		if (!dump_is_blocked(thread, blocked_ns))
			continue;
		n++;
		if (!longest || thread->blocked_ns > longest->blocked_ns)
			longest = thread;
	}
	if (n == 0)
		return;
	call_text_duration(longest->blocked_ns, duration);
	fprintf(stream, "! \"%s\" %d has waited for %s (%s), longer than --blocked", longest->name,
	        dump_thread_of(dump, longest)->tid, duration, wait_kind_name(longest->kind));
	if (n > 1)
		fprintf(stream, "; %zu more thread%s waited too long", n - 1,
		        n == 2 ? " has" : "s have");
	fputc('\n', stream);
}

void dump_text_write(const struct dump *dump, const struct dump_text_options *options, FILE *stream)
{
	_cleanup_free_ bool *shown = memory_alloc_zeroed(dump->n_threads + 1, sizeof(*shown));

	put_head(dump, stream);
	dump_problems_write(dump, stream);
	put_blocked(dump, options->blocked_ns, stream);
	wait_group_text_write(dump->profile, "! ", "", MAX_WAIT_GROUPS, stream);
	for (size_t i = 0; i < dump->n_threads; i++) {
		struct group group = {0};
		for (size_t j = i; j < dump->n_threads && !shown[i]; j++) {
			if (j > i && (options->no_group || shown[j] ||
			              !is_same_group(dump, &dump->threads[i], &dump->threads[j])))
				continue;
			*array_push(group.members, group.count, group.capacity) = j;
			shown[j] = j > i;
		}
		if (group.count > 0)
			put_group(dump, &group, options->all_frames, stream);
		free(group.members);
	}
}

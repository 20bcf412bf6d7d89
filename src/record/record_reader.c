// SPDX-License-Identifier: MIT
#include "record_reader.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "frame_names.h"
#include "labels.h"
#include "memory.h"
#include "perf_map.h"
#include "record.h"
#include "record_cursor.h"
#include "recording.h"
#include "text.h"

enum {
	MAX_MODULES = 16384,
	MAX_TEXT_BYTES = 16384,
	MAX_TICKS = 1 << 30, // that one entry stands for
};

#define NONE UINT32_MAX

static void map_set(struct record_reader *reader, struct id_map *map, uint64_t id, uint32_t value)
{
	// Each thing takes a byte at least: a larger number is made up.
	if (id >= reader->recording->size || id >= NONE)
		return;
	map->ids = memory_grow(map->ids, &map->capacity, id + 1, sizeof(*map->ids));
	while (map->count <= id)
		map->ids[map->count++] = NONE;
	map->ids[id] = value;
}

static uint32_t map_get(const struct id_map *map, uint64_t id)
{
	return id < map->count ? map->ids[id] : NONE;
}

static char *take_clean(struct cursor *cursor)
{
	size_t size;
	const char *bytes = cursor_text(cursor, &size);

	return text_clean(bytes, size, MAX_TEXT_BYTES);
}

// Any bytes, as from a process.
static char *take_name(struct cursor *cursor)
{
	size_t size;
	const char *bytes = cursor_text(cursor, &size);

	return memory_strndup(bytes, size < MAX_TEXT_BYTES ? size : MAX_TEXT_BYTES);
}

static void read_start(struct record_reader *reader, struct cursor *cursor)
{
	struct recording *recording = reader->recording;
	const uint64_t start_time_ns = cursor_varint(cursor);
	const int64_t period_ns = cursor_time(cursor);
	const uint64_t pid = cursor_varint(cursor), flags = cursor_varint(cursor);

	if (cursor->failed || start_time_ns > INT64_MAX / 2)
		return;
	reader->profile->start_time_ns = (int64_t)start_time_ns;
	if (period_ns > 0)
		reader->profile->period_ns = period_ns;
	recording->pid = pid <= INT_MAX ? (int)pid : 0;
	recording->children = flags & RECORD_CHILDREN;
	reader->is_told_passes = flags & RECORD_PASSES;
	free(recording->host);
	free(recording->version);
	recording->host = take_clean(cursor);
	recording->version = take_clean(cursor);
}

// Why who sampled could not read it.
static void take_unreadable(struct module *module, struct cursor *cursor)
{
	char *told = cursor_has_more(cursor) ? take_clean(cursor) : NULL;

	if (told || module->told)
		module->unreadable = told;
	free(module->told);
	module->told = told;
}

static void read_module(struct record_reader *reader, struct cursor *cursor)
{
	struct modules *modules = &reader->recording->modules;
	const uint64_t id = cursor_varint(cursor), kind = cursor_varint(cursor);
	const bool is_program = cursor_varint(cursor) & 1;
	const uint64_t device = cursor_varint(cursor), inode = cursor_varint(cursor);
	const uint64_t build_id_size = cursor_varint(cursor);
	const uint8_t *build_id = cursor_bytes(cursor, build_id_size);
	_cleanup_free_ char *path = take_name(cursor);

	if (cursor->failed || kind > MODULE_RUNTIME || build_id_size > MODULE_MAX_BUILD_ID ||
	    !path[0] || modules->count >= MAX_MODULES) {
		cursor->failed = true;
		return;
	}
	const uint32_t known = map_get(&reader->modules, id);
	struct module *module =
	    known != NONE ? modules->items[known]
	                  : modules_add(modules, (enum module_kind)kind, path, device, inode, -1);
	if (known != NONE && strcmp(module->path, path) != 0)
		module_rename(module, path);
	memcpy(module->build_id, build_id, build_id_size);
	module->build_id_size = build_id_size;
	if (is_program)
		modules->program = module;
	take_unreadable(module, cursor);
	map_set(reader, &reader->modules, id, module->index);
}

static void read_mapping(struct record_reader *reader, struct cursor *cursor)
{
	const uint32_t id = map_get(&reader->modules, cursor_varint(cursor));
	struct module_mapping mapping = {.start = cursor_varint(cursor)};

	mapping.end = cursor_varint(cursor);
	mapping.file_offset = cursor_varint(cursor);
	mapping.bias = cursor_varint(cursor);
	if (cursor->failed || id == NONE || mapping.start >= mapping.end)
		cursor->failed = true;
	else
		module_add_mapping(reader->recording->modules.items[id], &mapping);
}

// The module of what is lost.
static uint32_t lost_module(struct record_reader *reader)
{
	if (reader->lost_module == NONE)
		reader->lost_module =
		    modules_add(&reader->recording->modules, MODULE_UNKNOWN, "[unknown]", 0, 0, -1)
		        ->index;
	return reader->lost_module;
}

static void read_locations(struct record_reader *reader, struct cursor *cursor)
{
	uint64_t id = cursor_varint(cursor), address = 0;

	while (cursor_has_more(cursor)) {
		const uint64_t which = cursor_varint(cursor);
		const uint64_t code = which & 1 ? cursor_varint(cursor) : 0;
		uint32_t module = map_get(&reader->modules, which >> 1);
		address += (uint64_t)cursor_signed(cursor);
		if (cursor->failed)
			return;
		if (module == NONE)
			module = lost_module(reader);
		map_set(reader, &reader->locations, id++,
		        profile_intern_code(reader->profile, module, address, (uint32_t)code));
	}
}

// It has the same number wherever it is. A location may have got it after its code was sampled.
static void read_code(struct record_reader *reader, struct cursor *cursor)
{
	const uint32_t id = map_get(&reader->locations, cursor_varint(cursor));
	const uint64_t code = cursor_varint(cursor);
	_cleanup_free_ char *name = take_name(cursor);

	if (cursor->failed || id == NONE || code > UINT32_MAX) {
		cursor->failed = true;
		return;
	}
	struct location *location = &reader->profile->locations[id];
	struct module *module = reader->recording->modules.items[location->module];
	if (module->kind != MODULE_ANONYMOUS)
		return;
	if (!module->perf_map)
		module->perf_map = perf_map_create();
	perf_map_set(module->perf_map, (uint32_t)code, name);
	location->code = (uint32_t)code;
	reader->recording->n_codes++;
}

static bool read_frames(struct record_reader *reader, struct cursor *cursor)
{
	const uint64_t n_common = cursor_varint(cursor), n_new = cursor_varint(cursor);

	if (cursor->failed || n_common > reader->n_frames || n_new > cursor_left(cursor))
		return false;
	// Leaf first: the common ones are the last ones.
	const size_t n = n_common + n_new;
	reader->frames =
	    memory_grow(reader->frames, &reader->frames_capacity, n, sizeof(*reader->frames));
	if (n_common)
		memmove(reader->frames + n_new, reader->frames + reader->n_frames - n_common,
		        n_common * sizeof(*reader->frames));
	reader->n_frames = n;
	for (uint64_t i = 0; i < n_new; i++) {
		reader->frames[i] = map_get(&reader->locations, cursor_varint(cursor));
		if (reader->frames[i] == NONE)
			reader->frames[i] =
			    profile_intern_location(reader->profile, lost_module(reader), 0);
	}
	return !cursor->failed;
}

static void read_stacks(struct record_reader *reader, struct cursor *cursor)
{
	uint64_t id = cursor_varint(cursor);

	reader->n_frames = 0;
	while (cursor_has_more(cursor)) {
		const uint64_t end = cursor_varint(cursor);
		if (end >> 2 >= N_STACK_ENDS || !read_frames(reader, cursor)) {
			cursor->failed = true;
			return;
		}
		map_set(reader, &reader->stacks, id++,
		        profile_intern_stack(reader->profile, reader->frames, reader->n_frames,
		                             (enum stack_end)(end >> 2), end & 3));
	}
}

static void rename_thread(struct record_reader *reader, uint32_t thread, const char *name,
                          uint64_t task_id)
{
	profile_rename_thread(reader->profile, thread, name);
	if (reader->profile->threads[thread].is_task)
		reader->profile->threads[thread].task_id = task_id;
}

static void read_thread(struct record_reader *reader, struct cursor *cursor)
{
	const uint64_t id = cursor_varint(cursor);
	const uint64_t pid = cursor_varint(cursor), tid = cursor_varint(cursor);
	const int64_t first_ns = cursor_time(cursor);
	_cleanup_free_ char *name = take_name(cursor);
	const bool is_task = cursor_has_more(cursor);
	const uint64_t task_id = is_task ? cursor_varint(cursor) : 0;
	const uint32_t known = map_get(&reader->threads, id);

	if (cursor->failed || pid > INT_MAX || tid > INT_MAX)
		cursor->failed = true;
	else if (known != NONE)
		rename_thread(reader, known, name, task_id);
	else if (is_task)
		map_set(reader, &reader->threads, id,
		        profile_add_task(reader->profile, (int)pid, task_id, name, first_ns));
	else
		map_set(reader, &reader->threads, id,
		        profile_add_thread(reader->profile, (int)pid, (int)tid, name, first_ns));
}

// A name that comes with another time than the pid's last one is of another process.
static void name_process(struct profile *profile, int pid, const char *name, int64_t from_ns)
{
	for (size_t i = profile->n_processes; from_ns && i-- > 0;)
		if (profile->processes[i].pid == pid && profile->processes[i].from_ns == from_ns)
			from_ns = 0;
	if (from_ns)
		profile_begin_process(profile, pid, name, from_ns);
	else
		profile_name_process(profile, pid, name);
}

static void read_process(struct record_reader *reader, struct cursor *cursor)
{
	const uint64_t pid = cursor_varint(cursor);
	_cleanup_free_ char *name = take_name(cursor);
	const int64_t from_ns = cursor_has_more(cursor) ? cursor_time(cursor) : 0;

	if (!cursor->failed && pid <= INT_MAX)
		name_process(reader->profile, (int)pid, name, from_ns);
}

static void read_wait(struct record_reader *reader, struct cursor *cursor)
{
	const uint64_t id = cursor_varint(cursor);
	const int64_t syscall = cursor_signed(cursor);
	_cleanup_free_ char *descriptor = take_name(cursor);
	_cleanup_free_ char *meaning = take_name(cursor);
	_cleanup_free_ char *frames = take_name(cursor);
	_cleanup_free_ char *reason = cursor_has_more(cursor) ? take_name(cursor) : NULL;

	if (cursor->failed || syscall < NO_SYSCALL || syscall > INT_MAX) {
		cursor->failed = true;
		return;
	}
	const uint32_t wait =
	    reason ? profile_intern_reason(reader->profile, reason, descriptor)
	           : profile_intern_wait(reader->profile, (int)syscall, descriptor, frames);
	map_set(reader, &reader->waits, id, wait);
	if (meaning[0] && wait != WAIT_NONE)
		profile_explain_descriptor(reader->profile, wait, meaning);
}

static void read_labels(struct record_reader *reader, struct cursor *cursor)
{
	const uint64_t id = cursor_varint(cursor);
	_cleanup_free_ char *labels = NULL;

	while (!cursor->failed && cursor_has_more(cursor)) {
		_cleanup_free_ char *key = take_name(cursor);
		_cleanup_free_ char *value = take_name(cursor);
		if (!cursor->failed)
			labels_add(&labels, key, value);
	}
	if (!cursor->failed)
		map_set(reader, &reader->labels, id,
		        profile_intern_labels(reader->profile, labels));
}

static int64_t at_least(int64_t ns, int64_t least_ns)
{
	return ns < least_ns ? least_ns : ns;
}

// The thread's span had more ticks than it began with. None: it ended before its first tick's
// period did, as sampling was over.
static void prolong_span(struct record_reader *reader, uint32_t id, uint64_t ticks, int64_t end_ns)
{
	const struct thread *thread = &reader->profile->threads[id];

	if (ticks == 0)
		profile_give_back(reader->profile, id, end_ns);
	else if (thread->span.count > 0 && ticks <= MAX_TICKS)
		profile_count_again(reader->profile, thread->span.sample, ticks,
		                    at_least(end_ns, thread->last_ns));
}

static uint32_t lost_stack(struct record_reader *reader)
{
	reader->recording->lost_stacks++;
	return profile_intern_stack(reader->profile, NULL, 0, STACK_NOT_SAMPLED, false);
}

// A thread whose stretch has ended, and which begins another one later, ran tasks meanwhile:
// the time is theirs. Recordings that do not tell that are of earlier versions.
static void pass_gap(struct record_reader *reader, uint32_t id, uint64_t ticks, int64_t now_ns)
{
	const struct thread *thread = &reader->profile->threads[id];
	const int64_t gap_ns = now_ns - thread->last_ns;
	const int64_t period_ns = reader->profile->period_ns;

	if (!reader->is_told_passes && thread->span.count == 0 &&
	    thread->last_ns > thread->first_ns && period_ns > 0 &&
	    gap_ns / period_ns > (int64_t)ticks)
		profile_pass(reader->profile, id, now_ns - (int64_t)ticks * period_ns);
}

// Returns the thread of that number. It may be unknown when its birth was in what is lost; a thread
// then stands for it.
static uint32_t find_thread(struct record_reader *reader, const struct cursor *cursor,
                            uint64_t number)
{
	uint32_t thread = map_get(&reader->threads, number);

	if (thread != NONE || cursor->failed || number >= reader->recording->size)
		return thread;
	thread = profile_add_thread(reader->profile, reader->recording->pid, 0, "[lost]",
	                            reader->now_ns);
	map_set(reader, &reader->threads, number, thread);
	return thread;
}

static void read_prolonging(struct record_reader *reader, struct cursor *cursor, uint32_t thread)
{
	const uint64_t ticks = cursor_varint(cursor);
	const int64_t before_ns = cursor_time(cursor);

	if (!cursor->failed && thread != NONE)
		prolong_span(reader, thread, ticks, reader->now_ns - before_ns);
}

// Reads the sample that begins a span, of which `flags` tell the fields that are there.
static void read_sample(struct record_reader *reader, struct cursor *cursor, uint32_t thread,
                        uint64_t flags)
{
	const unsigned int state = flags & RECORD_STATE;
	uint64_t stack = map_get(&reader->stacks, cursor_varint(cursor)), ticks = 1;
	int64_t now_ns = reader->now_ns;
	uint32_t wait = NONE, labels = NONE;

	if (flags & RECORD_TICKS)
		ticks = cursor_varint(cursor);
	if (flags & RECORD_EARLIER)
		now_ns -= cursor_time(cursor);
	if (flags & RECORD_WAITS)
		wait = map_get(&reader->waits, cursor_varint(cursor));
	if (flags & RECORD_LABELLED)
		labels = map_get(&reader->labels, cursor_varint(cursor));
	if (cursor->failed || thread == NONE || state >= N_THREAD_STATES || ticks == 0 ||
	    ticks > MAX_TICKS) {
		cursor->failed = true;
		return;
	}
	if (stack == NONE)
		stack = lost_stack(reader);
	pass_gap(reader, thread, ticks, now_ns);
	profile_label_thread(reader->profile, thread, labels == NONE ? LABELS_NONE : labels);
	profile_count(reader->profile, thread, stack, (enum thread_state)state,
	              wait == NONE ? WAIT_NONE : wait, ticks,
	              at_least(now_ns, reader->profile->threads[thread].last_ns));
}

// Reads one entry of RECORD_SAMPLES: what is to be said of a thread's last span, and the next one.
static void read_entry(struct record_reader *reader, struct cursor *cursor)
{
	const uint64_t number = cursor_varint(cursor), flags = cursor_varint(cursor);
	const uint32_t thread = find_thread(reader, cursor, number);

	if (flags & RECORD_LASTED)
		read_prolonging(reader, cursor, thread);
	if ((flags & RECORD_STATE) != RECORD_NO_SAMPLE)
		read_sample(reader, cursor, thread, flags);
	else if (!cursor->failed && thread != NONE)
		profile_end_span(reader->profile, thread);
}

static void read_samples(struct record_reader *reader, struct cursor *cursor)
{
	const int64_t delta_ns = cursor_time(cursor);

	if (cursor->failed || reader->now_ns + delta_ns > CURSOR_MAX_NS)
		return;
	reader->now_ns += delta_ns;
	if (reader->now_ns > reader->last_ns)
		reader->last_ns = reader->now_ns;
	while (cursor_has_more(cursor))
		read_entry(reader, cursor);
}

static void read_pass(struct record_reader *reader, struct cursor *cursor)
{
	const uint32_t thread = map_get(&reader->threads, cursor_varint(cursor));
	const int64_t until_ns = cursor_time(cursor);

	if (!cursor->failed && thread != NONE)
		profile_pass(reader->profile, thread, until_ns);
}

static void read_death(struct record_reader *reader, struct cursor *cursor)
{
	const uint32_t thread = map_get(&reader->threads, cursor_varint(cursor));

	if (!cursor->failed && thread != NONE)
		profile_end_thread(reader->profile, thread);
}

static void read_progress(struct record_reader *reader, struct cursor *cursor)
{
	const uint32_t thread = map_get(&reader->threads, cursor_varint(cursor));
	const uint64_t ticks = cursor_varint(cursor);
	const int64_t until_ns = cursor_time(cursor);

	if (!cursor->failed && thread != NONE && ticks > 0)
		prolong_span(reader, thread, ticks, until_ns);
}

static void read_window(struct record_reader *reader, struct cursor *cursor)
{
	struct recording *recording = reader->recording;
	struct window_end end = {.at_ns = cursor_time(cursor), .n_late = cursor_varint(cursor)};
	_cleanup_free_ char *why = take_clean(cursor);

	while (!cursor->failed && cursor_has_more(cursor))
		read_progress(reader, cursor);
	if (cursor->failed || !recording->window_ended)
		return;
	end.why = why;
	record_reader_give_files(reader);
	recording->window_ended(recording->context, &end);
}

static void read_forget(struct record_reader *reader)
{
	struct recording *recording = reader->recording;
	struct id_map *threads = &reader->threads;

	reader->stacks.count = 0;
	for (size_t i = 0; i < threads->count; i++)
		if (threads->ids[i] != NONE && reader->profile->threads[threads->ids[i]].ended)
			threads->ids[i] = NONE;
	if (recording->may_collect)
		recording->may_collect(recording->context);
}

static void read_kernel_figures(struct record_reader *reader, struct cursor *cursor)
{
	const uint32_t thread = map_get(&reader->threads, cursor_varint(cursor));
	struct thread_figures figures = {.at_ns = cursor_time(cursor)};

	figures.cpu_ns = cursor_time(cursor);
	figures.delay_ns = cursor_time(cursor);
	figures.held_ns = cursor_time(cursor);
	figures.displaced_ns = cursor_time(cursor);
	if (cursor->failed || thread == NONE)
		return;
	figures.at_ns += figures.at_ns == 0; // 0: not known
	profile_take_figures(reader->profile, thread, &figures);
}

static void read_figures(struct record_reader *reader, struct cursor *cursor)
{
	struct recording *recording = reader->recording;
	const int64_t last_ns = cursor_time(cursor);
	const uint64_t ticks = cursor_varint(cursor), missed = cursor_varint(cursor);
	const uint64_t thinned = cursor_varint(cursor);
	const int64_t held_ns = cursor_time(cursor);

	if (cursor->failed)
		return;
	reader->last_ns = at_least(last_ns, reader->last_ns);
	recording->ticks += ticks;
	recording->missed_ticks += missed;
	recording->thinned_ticks += thinned;
	if (recording->held_ns < CURSOR_MAX_NS)
		recording->held_ns += held_ns;
	if (cursor_has_more(cursor)) // not in older recordings
		reader->profile->late_ns = cursor_time(cursor);
}

// Reads a sum of all threads' times, which may be larger than any time.
static int64_t take_sum(struct cursor *cursor)
{
	const uint64_t value = cursor_varint(cursor);

	cursor->failed |= value > INT64_MAX / 4;
	return cursor->failed ? 0 : (int64_t)value;
}

static void read_cpu_waits(struct record_reader *reader, struct cursor *cursor)
{
	struct cpu_log *log = &reader->recording->cpu_log;
	struct cpu_waits figures = {.at_ns = cursor_time(cursor)};

	figures.cpu_ns = take_sum(cursor);
	figures.delay_ns = take_sum(cursor);
	figures.n_cpus = (uint32_t)cursor_varint(cursor);
	figures.limit = (uint32_t)cursor_varint(cursor);
	figures.n_periods = (uint64_t)take_sum(cursor);
	figures.n_throttled = (uint64_t)take_sum(cursor);
	figures.throttled_ns = take_sum(cursor);
	if (log->count > 0 && figures.at_ns <= log->items[log->count - 1].at_ns)
		cursor->failed = true;
	if (!cursor->failed)
		cpu_log_add(log, &figures);
}

static void read_overflow(struct record_reader *reader, struct cursor *cursor)
{
	const uint64_t reason = cursor_varint(cursor);
	const uint64_t samples = cursor_varint(cursor), names = cursor_varint(cursor);

	if (cursor->failed || (reason != RECORD_OVERFLOW_SIZE && reason != RECORD_OVERFLOW_READER))
		return;
	reader->recording->full |= reason == RECORD_OVERFLOW_SIZE;
	reader->recording->dropped_samples = samples;
	reader->recording->dropped_names = names;
}

static void read_functions(struct record_reader *reader, struct cursor *cursor)
{
	struct symbols *symbols = &reader->recording->symbols;
	uint64_t id = cursor_varint(cursor);

	while (cursor_has_more(cursor)) {
		struct function function = {.name = take_clean(cursor)};
		function.system_name = take_clean(cursor);
		function.file = take_clean(cursor);
		function.start_line = (uint32_t)cursor_varint(cursor);
		map_set(reader, &reader->functions, id++, symbols->n_functions);
		*array_push(symbols->functions, symbols->n_functions, symbols->functions_capacity) =
		    function;
	}
}

// Each has the number that it had: addresses are made of it.
static void read_frame_functions(struct record_reader *reader, struct cursor *cursor)
{
	const uint32_t id = map_get(&reader->modules, cursor_varint(cursor));
	uint64_t number = cursor_varint(cursor);
	struct module *module = id == NONE ? NULL : reader->recording->modules.items[id];

	if (cursor->failed || !module || !module->frame_names) {
		cursor->failed = true;
		return;
	}
	for (; cursor_has_more(cursor); number++) {
		_cleanup_free_ char *name = take_name(cursor);
		_cleanup_free_ char *file = take_name(cursor);
		const uint32_t start_line = (uint32_t)cursor_varint(cursor);
		if (cursor->failed || number > reader->recording->size) // each takes some bytes
			return;
		frame_names_set(module->frame_names, number, name, file, start_line);
	}
}

static void read_location_lines(struct record_reader *reader, struct cursor *cursor)
{
	struct symbols *symbols = &reader->recording->symbols;
	const uint32_t location = map_get(&reader->locations, cursor_varint(cursor));
	const uint64_t count = cursor_varint(cursor);
	const size_t first = symbols->n_lines;

	if (cursor->failed || count > cursor_left(cursor)) {
		cursor->failed = true;
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		const uint32_t function = map_get(&reader->functions, cursor_varint(cursor));
		const uint32_t line = (uint32_t)cursor_varint(cursor);
		if (function != NONE)
			*array_push(symbols->lines, symbols->n_lines, symbols->lines_capacity) =
			    (struct line){.function = function, .line = line};
	}
	if (location == NONE || location >= symbols->n_locations)
		return;
	symbols->locations[location] =
	    (struct location_lines){.first = first, .count = symbols->n_lines - first};
	reader->recording->has_symbols = true;
}

static void read_lines(struct record_reader *reader, struct cursor *cursor)
{
	struct recording *recording = reader->recording;

	symbols_fit(&recording->symbols, recording->profile.n_locations); // names come after all
	while (cursor_has_more(cursor))
		read_location_lines(reader, cursor);
}

static void read_end(struct record_reader *reader, struct cursor *cursor)
{
	const int64_t last_ns = cursor_time(cursor);
	const uint64_t n_samples = cursor_varint(cursor);

	if (cursor->failed)
		return;
	reader->recording->n_samples = n_samples;
	free(reader->recording->comment);
	reader->recording->comment = take_clean(cursor);
	// It may be in the midst of the period of the last samples.
	reader->last_ns = at_least(last_ns, reader->last_ns - reader->profile->period_ns);
	reader->recording->whole = true;
}

static void read_record(struct record_reader *reader, uint64_t type, struct cursor *cursor)
{
	static void (*const readers[])(struct record_reader *, struct cursor *) = {
	    [RECORD_START] = read_start,       [RECORD_MODULE] = read_module,
	    [RECORD_MAPPING] = read_mapping,   [RECORD_LOCATIONS] = read_locations,
	    [RECORD_STACKS] = read_stacks,     [RECORD_THREAD] = read_thread,
	    [RECORD_PROCESS] = read_process,   [RECORD_SAMPLES] = read_samples,
	    [RECORD_DEATH] = read_death,       [RECORD_FIGURES] = read_figures,
	    [RECORD_OVERFLOW] = read_overflow, [RECORD_FUNCTIONS] = read_functions,
	    [RECORD_LINES] = read_lines,       [RECORD_END] = read_end,
	    [RECORD_WAIT] = read_wait,         [RECORD_FRAME_FUNCTIONS] = read_frame_functions,
	    [RECORD_LABELS] = read_labels,     [RECORD_THREAD_FIGURES] = read_kernel_figures,
	    [RECORD_CPU] = read_cpu_waits,     [RECORD_CODE] = read_code,
	    [RECORD_PASS] = read_pass,         [RECORD_WINDOW] = read_window,
	};

	// Whoever reads a stream finds out the names: they come at the end of a file alone.
	if (reader->recording->stream && (type == RECORD_FUNCTIONS || type == RECORD_LINES))
		return;
	if (type == RECORD_FORGET)
		read_forget(reader);
	else if (type < array_size(readers) && readers[type])
		readers[type](reader, cursor);
	reader->recording->bad_records += cursor->failed;
}

void record_reader_block(struct record_reader *reader, const uint8_t *bytes, size_t size)
{
	struct cursor cursor = {.at = bytes, .end = bytes + size};

	reader->now_ns = 0;
	while (cursor_has_more(&cursor)) {
		const uint64_t type = cursor_varint(&cursor), length = cursor_varint(&cursor);
		const uint8_t *record = cursor_bytes(&cursor, length);
		if (cursor.failed)
			reader->recording->bad_records++;
		else
			read_record(reader, type,
			            &(struct cursor){.at = record, .end = record + length});
	}
}

void record_reader_start(struct record_reader *reader, const uint8_t *bytes, size_t size)
{
	struct cursor cursor = {.at = bytes, .end = bytes + size};

	if (cursor_varint(&cursor) != RECORD_START)
		return;
	const uint64_t length = cursor_varint(&cursor);
	const uint8_t *record = cursor_bytes(&cursor, length);
	if (!cursor.failed)
		read_start(reader, &(struct cursor){.at = record, .end = record + length});
}

void record_reader_give_files(struct record_reader *reader)
{
	struct taken_files *files = &reader->recording->files;

	for (size_t i = files->n; i-- > 0;) {
		const uint32_t id = map_get(&reader->modules, files->items[i].number);
		if (id != NONE)
			taken_files_give(files, i, reader->recording->modules.items[id]);
	}
}

// Returns the number of each thread's samples; the caller frees.
static uint64_t *count_samples(const struct profile *profile)
{
	uint64_t *counts = memory_alloc_zeroed(profile->n_threads + 1, sizeof(*counts));

	for (size_t i = 0; i < profile->n_samples; i++)
		counts[profile->samples[i].thread] += profile->samples[i].count;
	return counts;
}

void record_reader_prolong(struct record_reader *reader)
{
	const struct recording *recording = reader->recording;
	struct profile *profile = reader->profile;
	const double ticks_per_ns =
	    reader->last_ns > 0 && recording->ticks > 1 && recording->ticks < MAX_TICKS
	        ? (double)(recording->ticks - 1) / (double)reader->last_ns
	        : 0;

	_cleanup_free_ uint64_t *counts = count_samples(profile);
	for (size_t i = 0; i < profile->n_threads; i++) {
		const struct thread *thread = &profile->threads[i];
		if (thread->ended || thread->span.count == 0)
			continue;
		reader->recording->open_threads++;
		if (reader->last_ns <= thread->last_ns || recording->ticks <= counts[i])
			continue;
		const uint64_t left = recording->ticks - counts[i];
		const double ticks = (double)(reader->last_ns - thread->last_ns) * ticks_per_ns;
		const uint64_t rounded = (uint64_t)(ticks + 0.5);
		prolong_span(reader, i, rounded < left ? rounded : left, reader->last_ns);
	}
}

void record_reader_init(struct record_reader *reader, struct recording *recording)
{
	*reader = (struct record_reader){
	    .recording = recording, .profile = &recording->profile, .lost_module = NONE};
}

void record_reader_deinit(struct record_reader *reader)
{
	free(reader->modules.ids);
	free(reader->locations.ids);
	free(reader->stacks.ids);
	free(reader->threads.ids);
	free(reader->waits.ids);
	free(reader->labels.ids);
	free(reader->functions.ids);
	free(reader->frames);
}

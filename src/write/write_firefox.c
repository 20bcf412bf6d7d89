// SPDX-License-Identifier: MIT
// Firefox Profiler's processed profile format, version 66
// (docs-developer/processed-profile-format.md and src/types/profile.ts in
// firefox-devtools/profiler): columnar tables that all threads share, and samples and markers of
// each thread.
//
// A span is one sample, weighted with its ticks. The category of its leaf is the thread's state.
// Markers show the system calls that a thread waits in, what tasks wait for, labels, and
// missed ticks.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "frame_name.h"
#include "frame_table.h"
#include "hash.h"
#include "json.h"
#include "labels.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "text.h"
#include "timeline.h"
#include "writer.h"

enum { FORMAT_VERSION = 66, GECKO_VERSION = 30, MARKER_INSTANT = 0, MARKER_INTERVAL = 1 };

// The tables of a processed profile that its threads share: strings, functions, frames, stacks as a
// tree, libraries.
enum firefox_category {
	FIREFOX_OTHER, // the grey one, which each profile must have
	FIREFOX_RUNNING,
	FIREFOX_WAITING_FOR_CPU,
	FIREFOX_SLEEPING,
	FIREFOX_DISK,
	FIREFOX_STOPPED,
	FIREFOX_KERNEL, // of frames in the kernel that are not a stack's leaf
	N_FIREFOX_CATEGORIES,
};

// A frame in the tree of stacks. The leaf of a sample has the sample's category, any other frame
// the kernel's or its parent's.
struct firefox_frame {
	uint32_t frame; // position in frames
	int category;   // -1: the parent's
};

struct firefox_stack {
	uint32_t frame;  // position in leaf_frames
	uint32_t parent; // stack, or NO_PARENT
};

struct firefox_tables {
	struct frame_table frames; // its functions and strings are those of the profile
	struct firefox_frame *leaf_frames;
	size_t n_leaf_frames, leaf_frames_capacity;
	struct firefox_stack *stacks;
	size_t n_stacks, stacks_capacity;
	struct hash_index frame_index, stack_index;
};

enum { RESOURCE_LIBRARY = 1 }; // resourceTypes.library in the source of Firefox Profiler

#define NO_PARENT UINT32_MAX

static const struct {
	const char *name, *color;
} categories[] = {
    [FIREFOX_OTHER] = {"Other", "grey"},
    [FIREFOX_RUNNING] = {"Running", "green"},
    [FIREFOX_WAITING_FOR_CPU] = {"Waiting for a CPU", "yellow"},
    [FIREFOX_SLEEPING] = {"Sleeping", "blue"},
    [FIREFOX_DISK] = {"Disk", "orange"},
    [FIREFOX_STOPPED] = {"Stopped", "red"},
    [FIREFOX_KERNEL] = {"Kernel", "purple"},
};

static const char *firefox_category_name(enum firefox_category category)
{
	return categories[category].name;
}

static const char *firefox_category_color(enum firefox_category category)
{
	return categories[category].color;
}

static enum firefox_category firefox_category_of(enum thread_state state)
{
	switch (state) {
	case THREAD_RUNNING:
		return FIREFOX_RUNNING;
	case THREAD_RUNNABLE:
		return FIREFOX_WAITING_FOR_CPU;
	case THREAD_SLEEPING:
		return FIREFOX_SLEEPING;
	case THREAD_DISK:
		return FIREFOX_DISK;
	case THREAD_STOPPED:
		return FIREFOX_STOPPED;
	default:
		return FIREFOX_OTHER;
	}
}

static void firefox_tables_init(struct firefox_tables *tables, const struct report *report)
{
	*tables = (struct firefox_tables){0};
	frame_table_init(&tables->frames, report);
}

static void firefox_tables_deinit(struct firefox_tables *tables)
{
	frame_table_deinit(&tables->frames);
	free(tables->leaf_frames);
	free(tables->stacks);
	hash_index_deinit(&tables->frame_index);
	hash_index_deinit(&tables->stack_index);
	*tables = (struct firefox_tables){0};
}

static bool frame_equal(const void *context, uint32_t id, const void *key)
{
	const struct firefox_tables *tables = context;
	const struct firefox_frame *a = &tables->leaf_frames[id], *b = key;

	return a->frame == b->frame && a->category == b->category;
}

static uint32_t add_frame(struct firefox_tables *tables, uint32_t frame, int category)
{
	const struct firefox_frame key = {.frame = frame, .category = category};
	const uint64_t hash = hash_mix(frame, (uint64_t)(category + 1));
	uint32_t id = hash_index_find(&tables->frame_index, hash, frame_equal, tables, &key);

	if (id != HASH_NONE)
		return id;
	id = (uint32_t)tables->n_leaf_frames;
	*array_push(tables->leaf_frames, tables->n_leaf_frames, tables->leaf_frames_capacity) = key;
	hash_index_insert(&tables->frame_index, hash, id);
	return id;
}

static bool stack_equal(const void *context, uint32_t id, const void *key)
{
	const struct firefox_tables *tables = context;
	const struct firefox_stack *a = &tables->stacks[id], *b = key;

	return a->frame == b->frame && a->parent == b->parent;
}

static uint32_t add_stack(struct firefox_tables *tables, uint32_t frame, uint32_t parent)
{
	const struct firefox_stack key = {.frame = frame, .parent = parent};
	const uint64_t hash = hash_mix(frame, parent);
	uint32_t id = hash_index_find(&tables->stack_index, hash, stack_equal, tables, &key);

	if (id != HASH_NONE)
		return id;
	id = (uint32_t)tables->n_stacks;
	*array_push(tables->stacks, tables->n_stacks, tables->stacks_capacity) = key;
	hash_index_insert(&tables->stack_index, hash, id);
	return id;
}

static int category_of(const struct firefox_tables *tables, uint32_t frame,
                       const struct sample *sample, bool leaf)
{
	const struct frame_table *frames = &tables->frames;

	if (leaf)
		return (int)firefox_category_of(sample->state);
	return frames->functions[frames->frames[frame].function].kind == FRAME_KERNEL
	           ? (int)FIREFOX_KERNEL
	           : -1;
}

// The sample's stack in stackTable.
static uint32_t firefox_tables_stack(struct firefox_tables *tables, const struct sample *sample)
{
	uint32_t stack = NO_PARENT;
	size_t n;
	const uint32_t *frames = frame_table_stack(&tables->frames, sample, &n);

	for (size_t i = 0; i < n; i++) {
		const int category = category_of(tables, frames[i], sample, i + 1 == n);
		stack = add_stack(tables, add_frame(tables, frames[i], category), stack);
	}
	return stack;
}

// Writes a column of `n` equal numbers; INT64_MIN stands for null.
static void put_constant(struct json *json, const char *key, size_t n, int64_t value)
{
	json_key_open(json, key, '[');
	for (size_t i = 0; i < n; i++) {
		if (value == INT64_MIN)
			json_null(json);
		else
			json_int(json, value);
	}
	json_close(json, ']');
}

static void put_nulls(struct json *json, const char *key, size_t n)
{
	put_constant(json, key, n, INT64_MIN);
}

static void put_falses(struct json *json, const char *key, size_t n)
{
	json_key_open(json, key, '[');
	for (size_t i = 0; i < n; i++)
		json_bool(json, false);
	json_close(json, ']');
}

static void put_stack_table(const struct firefox_tables *tables, struct json *json)
{
	const size_t n = tables->n_stacks;

	json_key_open(json, "stackTable", '{');
	json_key_open(json, "frame", '[');
	for (size_t i = 0; i < n; i++)
		json_int(json, tables->stacks[i].frame);
	json_close(json, ']');
	json_key_open(json, "prefixOffset", '[');
	for (size_t i = 0; i < n; i++) {
		const uint32_t parent = tables->stacks[i].parent;
		json_int(json, parent == NO_PARENT ? 0 : (int64_t)i - parent);
	}
	json_close(json, ']');
	json_key_int(json, "length", (int64_t)n);
	json_close(json, '}');
}

static const struct frame *frame_at(const struct firefox_tables *tables, size_t i)
{
	return &tables->frames.frames[tables->leaf_frames[i].frame];
}

static void put_frame_table(const struct firefox_tables *tables, struct json *json)
{
	const size_t n = tables->n_leaf_frames;

	json_key_open(json, "frameTable", '{');
	json_key_open(json, "func", '[');
	for (size_t i = 0; i < n; i++)
		json_int(json, frame_at(tables, i)->function);
	json_close(json, ']');
	json_key_open(json, "category", '[');
	for (size_t i = 0; i < n; i++) {
		if (tables->leaf_frames[i].category < 0)
			json_null(json);
		else
			json_int(json, tables->leaf_frames[i].category);
	}
	json_close(json, ']');
	json_key_open(json, "line", '[');
	for (size_t i = 0; i < n; i++) {
		if (frame_at(tables, i)->line)
			json_int(json, frame_at(tables, i)->line);
		else
			json_null(json);
	}
	json_close(json, ']');
	put_constant(json, "subcategory", n, 0);
	put_constant(json, "address", n, -1);
	put_constant(json, "inlineDepth", n, 0);
	put_constant(json, "innerWindowID", n, 0);
	put_nulls(json, "column", n);
	put_nulls(json, "nativeSymbol", n);
	put_nulls(json, "originalLocation", n);
	json_key_int(json, "length", (int64_t)n);
	json_close(json, '}');
}

// Numbers the modules that have functions: each is a library and a resource. Returns their numbers
// by the module's name in the strings, -1 for other strings. *ret_modules has those names; the
// caller frees both.
static int *number_modules(const struct firefox_tables *tables, uint32_t **ret_modules,
                           size_t *ret_n)
{
	const struct frame_table *frames = &tables->frames;
	int *numbers = memory_alloc_zeroed(frames->strings.count + 1, sizeof(*numbers));
	uint32_t *modules = NULL;
	size_t n = 0, capacity = 0;

	for (size_t i = 0; i < frames->strings.count; i++)
		numbers[i] = -1;
	for (size_t i = 0; i < frames->n_functions; i++) {
		const uint32_t module = frames->functions[i].module;
		if (numbers[module] >= 0 || !frame_table_string(frames, module)[0])
			continue;
		numbers[module] = (int)n;
		*array_push(modules, n, capacity) = module;
	}
	*ret_modules = modules;
	*ret_n = n;
	return numbers;
}

static void put_func_table(const struct firefox_tables *tables, const int *resources,
                           const int *sources, struct json *json)
{
	const struct frame_table *frames = &tables->frames;
	const size_t n = frames->n_functions;

	json_key_open(json, "funcTable", '{');
	json_key_open(json, "name", '[');
	for (size_t i = 0; i < n; i++)
		json_int(json, frames->functions[i].name);
	json_close(json, ']');
	put_falses(json, "isJS", n);
	put_falses(json, "relevantForJS", n);
	json_key_open(json, "resource", '[');
	for (size_t i = 0; i < n; i++)
		json_int(json, resources[frames->functions[i].module]);
	json_close(json, ']');
	json_key_open(json, "source", '[');
	for (size_t i = 0; i < n; i++) {
		if (sources[frames->functions[i].file] < 0)
			json_null(json);
		else
			json_int(json, sources[frames->functions[i].file]);
	}
	json_close(json, ']');
	json_key_open(json, "lineNumber", '[');
	for (size_t i = 0; i < n; i++) {
		if (frames->functions[i].start_line)
			json_int(json, frames->functions[i].start_line);
		else
			json_null(json);
	}
	json_close(json, ']');
	put_nulls(json, "columnNumber", n);
	put_nulls(json, "originalLocation", n);
	json_key_int(json, "length", (int64_t)n);
	json_close(json, '}');
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void put_libs(const struct firefox_tables *tables, const uint32_t *modules, size_t n,
                     struct json *json)
{
	json_key_open(json, "libs", '[');
	for (size_t i = 0; i < n; i++) {
		const char *path = frame_table_string(&tables->frames, modules[i]);
		const char *name = base_name(path);
		json_open(json, '{');
		json_key_string(json, "name", name);
		json_key_string(json, "path", path);
		json_key_string(json, "debugName", name);
		json_key_string(json, "debugPath", path);
		json_key_string(json, "breakpadId", "");
		json_key(json, "codeId");
		json_null(json);
		json_key_string(json, "arch", "");
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_resource_table(struct firefox_tables *tables, const uint32_t *modules, size_t n,
                               struct json *json)
{
	json_key_open(json, "resourceTable", '{');
	json_key_open(json, "lib", '[');
	for (size_t i = 0; i < n; i++)
		json_int(json, (int64_t)i);
	json_close(json, ']');
	json_key_open(json, "name", '[');
	for (size_t i = 0; i < n; i++)
		json_int(json, string_table_intern(
		                   &tables->frames.strings,
		                   base_name(frame_table_string(&tables->frames, modules[i]))));
	json_close(json, ']');
	put_nulls(json, "host", n);
	put_constant(json, "type", n, RESOURCE_LIBRARY);
	json_key_int(json, "length", (int64_t)n);
	json_close(json, '}');
}

// Writes the table of source files. Returns their numbers by the file's name in the strings, -1 for
// other strings; the caller frees.
static int *put_sources(const struct firefox_tables *tables, struct json *json)
{
	const struct frame_table *frames = &tables->frames;
	int *numbers = memory_alloc_zeroed(frames->strings.count + 1, sizeof(*numbers));
	int n = 0;

	for (size_t i = 0; i < frames->strings.count; i++)
		numbers[i] = -1;
	json_key_open(json, "sources", '{');
	json_key_open(json, "filename", '[');
	for (size_t i = 0; i < frames->n_functions; i++) {
		const uint32_t file = frames->functions[i].file;
		if (numbers[file] >= 0 || !frame_table_string(frames, file)[0])
			continue;
		json_int(json, file);
		numbers[file] = n++;
	}
	json_close(json, ']');
	put_nulls(json, "id", (size_t)n);
	put_nulls(json, "startLine", (size_t)n);
	put_nulls(json, "startColumn", (size_t)n);
	put_nulls(json, "sourceMapURL", (size_t)n);
	put_nulls(json, "content", (size_t)n);
	json_key_int(json, "length", n);
	json_close(json, '}');
	return numbers;
}

// Writes a table without rows.
static void put_empty_table(struct json *json, const char *key, const char *const *columns)
{
	json_key_open(json, key, '{');
	for (; *columns; columns++) {
		json_key_open(json, *columns, '[');
		json_close(json, ']');
	}
	json_key_int(json, "length", 0);
	json_close(json, '}');
}

// Writes the members "libs" and "shared".
static void firefox_tables_put(struct firefox_tables *tables, struct json *json)
{
	static const char *const native_columns[] = {"libIndex", "address", "name", "functionSize",
	                                             NULL};
	static const char *const location_columns[] = {"source", "line", "column", NULL};
	uint32_t *modules;
	size_t n_modules;
	int *resources = number_modules(tables, &modules, &n_modules);

	put_libs(tables, modules, n_modules, json);
	json_key_open(json, "shared", '{');
	int *sources = put_sources(tables, json);
	put_stack_table(tables, json);
	put_frame_table(tables, json);
	put_func_table(tables, resources, sources, json);
	put_resource_table(tables, modules, n_modules, json);
	put_empty_table(json, "nativeSymbols", native_columns);
	put_empty_table(json, "sourceLocationTable", location_columns);
	json_key_open(json, "stringArray", '[');
	for (size_t i = 0; i < tables->frames.strings.count; i++)
		json_string(json, frame_table_string(&tables->frames, (uint32_t)i));
	json_close(json, ']');
	json_close(json, '}');
	free(sources);
	free(resources);
	free(modules);
}

struct marker {
	uint32_t name; // string
	int64_t start_ns, end_ns;
	enum firefox_category category;
	uint32_t wait;    // WAIT_NONE: the marker shows labels or missed ticks
	uint32_t labels;  // LABELS_NONE: it shows something else
	uint64_t n_ticks; // that were missed
};

struct firefox {
	struct json json;
	struct firefox_tables tables;
	const struct report *report;
	const struct profile *profile;
	struct marker *markers; // of the thread that is being written
	size_t n_markers, markers_capacity;
};

static void key_time(struct json *json, const char *key, int64_t ns)
{
	json_key(json, key);
	json_time(json, ns, NS_PER_MS);
}

static void put_schema(struct json *json, const char *name, const char *label, const char *key,
                       const char *format)
{
	static const char *const display[] = {"marker-chart", "marker-table", "timeline-overview"};

	json_open(json, '{');
	json_key_string(json, "name", name);
	json_key_string(json, "tooltipLabel", "{marker.name}");
	json_key_string(json, "tableLabel", label);
	json_key_string(json, "chartLabel", "{marker.name}");
	json_key_open(json, "display", '[');
	for (size_t i = 0; i < array_size(display); i++)
		json_string(json, display[i]);
	json_close(json, ']');
	json_key_open(json, "fields", '[');
	json_open(json, '{');
	json_key_string(json, "key", key);
	json_key_string(json, "label", key);
	json_key_string(json, "format", format);
	json_close(json, '}');
	json_close(json, ']');
	json_close(json, '}');
}

static void put_categories(struct json *json)
{
	json_key_open(json, "categories", '[');
	for (enum firefox_category i = 0; i < N_FIREFOX_CATEGORIES; i++) {
		json_open(json, '{');
		json_key_string(json, "name", firefox_category_name(i));
		json_key_string(json, "color", firefox_category_color(i));
		json_key_open(json, "subcategories", '[');
		json_string(json, "Other");
		json_close(json, ']');
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_run(const struct firefox *firefox, struct json *json)
{
	const struct profile *profile = firefox->profile;
	const char *process = profile_process_name(profile, firefox->report->pid);
	_cleanup_free_ char *product = text_clean(process, strlen(process), TEXT_UNLIMITED);

	key_time(json, "interval", profile->period_ns);
	key_time(json, "startTime", profile->start_time_ns);
	key_time(json, "profilingStartTime", 0);
	key_time(json, "profilingEndTime", profile->duration_ns);
	json_key_int(json, "version", GECKO_VERSION);
	json_key_int(json, "preprocessedProfileVersion", FORMAT_VERSION);
	json_key_int(json, "processType", 0);
	json_key_int(json, "stackwalk", 1);
	json_key_bool(json, "debug", false);
	json_key_bool(json, "symbolicated", true);
	json_key_string(json, "product", product[0] ? product : "profiler");
	json_key_string(json, "importedFrom", "profiler " PROFILER_VERSION);
	json_key_bool(json, "usesOnlyOneStackType", true);
	json_key_bool(json, "doesNotUseFrameImplementation", true);
	json_key_bool(json, "sourceCodeIsNotOnSearchfox", true);
}

static void put_marker_schemas(struct json *json)
{
	json_key_open(json, "markerSchema", '[');
	put_schema(json, "Wait", "{marker.data.descriptor}", "descriptor", "string");
	put_schema(json, "Labels", "{marker.data.labels}", "labels", "string");
	put_schema(json, "MissedTicks", "{marker.data.ticks}", "ticks", "integer");
	json_close(json, ']');
}

// A table of the browser's extensions, without a row.
static void put_extensions(struct json *json)
{
	static const char *const columns[] = {"baseURL", "id", "name"};

	json_key_open(json, "extensions", '{');
	json_key_int(json, "length", 0);
	for (size_t i = 0; i < array_size(columns); i++) {
		json_key_open(json, columns[i], '[');
		json_close(json, ']');
	}
	json_close(json, '}');
}

static void put_units(struct json *json)
{
	json_key_open(json, "sampleUnits", '{');
	json_key_string(json, "time", "ms");
	json_key_string(json, "eventDelay", "ms");
	json_key_string(json, "threadCPUDelta", "ns");
	json_close(json, '}');
}

static void put_meta(struct firefox *firefox)
{
	struct json *json = &firefox->json;

	json_key_open(json, "meta", '{');
	put_run(firefox, json);
	put_categories(json);
	put_marker_schemas(json);
	put_extensions(json);
	put_units(json);
	json_close(json, '}');
}

static const struct sample *sample_of(const struct firefox *firefox, const struct span *span)
{
	return &firefox->profile->samples[span->sample];
}

// True if a gap precedes the span. A sample without weight ends the span before a gap, and the last
// one.
static bool gap_before(const struct thread_spans *thread, size_t i)
{
	return i == thread->count ||
	       (i > 0 && thread->spans[i].start_ns > thread->spans[i - 1].end_ns);
}

static int64_t end_before(const struct thread_spans *thread, size_t i)
{
	return thread->spans[i - 1].end_ns;
}

static void put_times(struct firefox *firefox, const struct thread_spans *thread)
{
	struct json *json = &firefox->json;

	json_key_open(json, "time", '[');
	for (size_t i = 0; i <= thread->count; i++) {
		if (gap_before(thread, i))
			json_time(json, end_before(thread, i) - firefox->profile->start_ns,
			          NS_PER_MS);
		if (i < thread->count)
			json_time(json, thread->spans[i].start_ns - firefox->profile->start_ns,
			          NS_PER_MS);
	}
	json_close(json, ']');
}

static size_t put_stacks(struct firefox *firefox, const struct thread_spans *thread)
{
	struct json *json = &firefox->json;
	size_t n = 0;

	json_key_open(json, "stack", '[');
	for (size_t i = 0; i <= thread->count; i++) {
		if (gap_before(thread, i)) {
			json_null(json);
			n++;
		}
		if (i < thread->count) {
			json_int(json, firefox_tables_stack(&firefox->tables,
			                                    sample_of(firefox, &thread->spans[i])));
			n++;
		}
	}
	json_close(json, ']');
	return n;
}

static void put_weights(struct firefox *firefox, const struct thread_spans *thread)
{
	struct json *json = &firefox->json;

	json_key_open(json, "weight", '[');
	for (size_t i = 0; i <= thread->count; i++) {
		if (gap_before(thread, i))
			json_int(json, 0);
		if (i < thread->count)
			json_int(json, (int64_t)thread->spans[i].count);
	}
	json_close(json, ']');
	json_key_string(json, "weightType", "samples");
}

// Writes the CPU time of each sample: what was used since the one before, by the span that ends
// there.
static void put_cpu_deltas(struct firefox *firefox, const struct thread_spans *thread)
{
	struct json *json = &firefox->json;

	json_key_open(json, "threadCPUDelta", '[');
	for (size_t i = 0; i <= thread->count; i++) {
		int64_t used_ns = 0;
		if (i > 0 && sample_of(firefox, &thread->spans[i - 1])->state == THREAD_RUNNING)
			used_ns = thread->spans[i - 1].end_ns - thread->spans[i - 1].start_ns;
		json_int(json, used_ns);
		if (i < thread->count && gap_before(thread, i))
			json_int(json, 0);
	}
	json_close(json, ']');
}

static void add_wait_marker(struct firefox *firefox, const struct span *span)
{
	const struct sample *sample = sample_of(firefox, span);
	struct marker *last = firefox->n_markers ? &firefox->markers[firefox->n_markers - 1] : NULL;

	if (sample->wait == WAIT_NONE) // there may be no table of waits
		return;
	const struct wait *wait = &firefox->profile->waits[sample->wait];
	_cleanup_free_ char *name = frame_name_waits_in(wait);
	if (!name)
		return;
	// A task that comes back to a wait waits anew, so that only a system call is
	// lengthened.
	if (last && last->wait == sample->wait && last->end_ns == span->start_ns &&
	    wait->syscall != NO_SYSCALL) {
		last->end_ns = span->end_ns;
		return;
	}
	*array_push(firefox->markers, firefox->n_markers, firefox->markers_capacity) =
	    (struct marker){
	        .name = string_table_intern(&firefox->tables.frames.strings, name),
	        .start_ns = span->start_ns,
	        .end_ns = span->end_ns,
	        .category = firefox_category_of(sample->state),
	        .wait = sample->wait,
	    };
}

// Adds one marker for as long as the labels stay the same, whatever else changes.
static void add_label_markers(struct firefox *firefox, const struct thread_spans *spans)
{
	const struct span *first = NULL; // the first one with the current labels

	for (size_t i = 0; i < spans->count; i++) {
		const struct span *span = &spans->spans[i];
		const uint32_t labels = sample_of(firefox, span)->labels;
		const bool goes_on = first && sample_of(firefox, first)->labels == labels &&
		                     span[-1].end_ns == span->start_ns;
		if (!goes_on)
			first = span;
		if (labels == LABELS_NONE)
			continue;
		if (goes_on) {
			firefox->markers[firefox->n_markers - 1].end_ns = span->end_ns;
			continue;
		}
		*array_push(firefox->markers, firefox->n_markers, firefox->markers_capacity) =
		    (struct marker){
		        .name = string_table_intern(&firefox->tables.frames.strings, "labels"),
		        .start_ns = span->start_ns,
		        .end_ns = span->end_ns,
		        .category = FIREFOX_OTHER,
		        .labels = labels,
		    };
	}
}

// Adds a marker if the span lasted longer than its ticks should have.
static void add_missed_marker(struct firefox *firefox, const struct span *span)
{
	const int64_t period_ns = firefox->profile->period_ns;
	const int64_t n_missed =
	    period_ns > 0 ? (span->end_ns - span->start_ns) / period_ns - (int64_t)span->count : 0;

	if (n_missed <= 0)
		return;
	*array_push(firefox->markers, firefox->n_markers, firefox->markers_capacity) =
	    (struct marker){
	        .name = string_table_intern(&firefox->tables.frames.strings, "missed ticks"),
	        .start_ns = span->start_ns,
	        .end_ns = span->end_ns,
	        .category = FIREFOX_OTHER,
	        .n_ticks = (uint64_t)n_missed,
	    };
}

static void put_marker_data(struct firefox *firefox, const struct marker *marker)
{
	struct json *json = &firefox->json;

	json_open(json, '{');
	if (marker->labels != LABELS_NONE) {
		const struct sample sample = {.labels = marker->labels};
		_cleanup_free_ char *labels = frame_name_labels(firefox->profile, &sample);
		json_key_string(json, "type", "Labels");
		json_key_string(json, "labels", labels ? labels : "");
	} else if (marker->wait == WAIT_NONE) {
		json_key_string(json, "type", "MissedTicks");
		json_key_int(json, "ticks", (int64_t)marker->n_ticks);
	} else {
		const char *what = frame_name_descriptor(&firefox->profile->waits[marker->wait]);
		_cleanup_free_ char *clean = text_clean(what, strlen(what), TEXT_UNLIMITED);
		json_key_string(json, "type", "Wait");
		json_key_string(json, "descriptor", clean);
	}
	json_close(json, '}');
}

static void put_markers(struct firefox *firefox)
{
	struct json *json = &firefox->json;
	const int64_t start_ns = firefox->profile->start_ns;
	const size_t n = firefox->n_markers;

	json_key_open(json, "markers", '{');
	json_key_open(json, "name", '[');
	for (size_t i = 0; i < n; i++)
		json_int(json, firefox->markers[i].name);
	json_close(json, ']');
	json_key_open(json, "startTime", '[');
	for (size_t i = 0; i < n; i++)
		json_time(json, firefox->markers[i].start_ns - start_ns, NS_PER_MS);
	json_close(json, ']');
	json_key_open(json, "endTime", '[');
	for (size_t i = 0; i < n; i++)
		json_time(json, firefox->markers[i].end_ns - start_ns, NS_PER_MS);
	json_close(json, ']');
	json_key_open(json, "phase", '[');
	for (size_t i = 0; i < n; i++)
		json_int(json, MARKER_INTERVAL);
	json_close(json, ']');
	json_key_open(json, "category", '[');
	for (size_t i = 0; i < n; i++)
		json_int(json, firefox->markers[i].category);
	json_close(json, ']');
	json_key_open(json, "data", '[');
	for (size_t i = 0; i < n; i++)
		put_marker_data(firefox, &firefox->markers[i]);
	json_close(json, ']');
	json_key_int(json, "length", (int64_t)n);
	json_close(json, '}');
}

static void put_samples(struct firefox *firefox, const struct thread_spans *spans)
{
	struct json *json = &firefox->json;

	json_key_open(json, "samples", '{');
	put_times(firefox, spans);
	put_weights(firefox, spans);
	put_cpu_deltas(firefox, spans);
	json_key_int(json, "length", (int64_t)put_stacks(firefox, spans));
	json_close(json, '}');
}

static void put_thread(struct firefox *firefox, const struct thread_spans *spans)
{
	const struct profile *profile = firefox->profile;
	const struct thread *thread = &profile->threads[spans->thread];
	const char *process = profile_process_of(profile, thread);
	_cleanup_free_ char *name = frame_name_track(profile, spans);
	_cleanup_free_ char *clean = text_clean(name, strlen(name), TEXT_UNLIMITED);
	_cleanup_free_ char *clean_process = text_clean(process, strlen(process), TEXT_UNLIMITED);
	struct json *json = &firefox->json;
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", thread->pid);
	json_open(json, '{');
	json_key_string(json, "processType", "default");
	json_key_string(json, "processName", clean_process);
	json_key_string(json, "name", clean);
	json_key_bool(json, "isMainThread", thread->tid == thread->pid);
	json_key_string(json, "pid", pid);
	json_key_int(json, "tid", thread->tid);
	key_time(json, "processStartupTime", 0);
	json_key(json, "processShutdownTime");
	json_null(json);
	key_time(json, "registerTime", spans->spans[0].start_ns - profile->start_ns);
	json_key(json, "unregisterTime");
	if (thread->ended)
		json_time(json, thread->last_ns - profile->start_ns, NS_PER_MS);
	else
		json_null(json);
	json_key_open(json, "pausedRanges", '[');
	json_close(json, ']');
	json_key_bool(json, "showMarkersInTimeline", false);
	firefox->n_markers = 0;
	for (size_t i = 0; i < spans->count; i++) {
		add_wait_marker(firefox, &spans->spans[i]);
		add_missed_marker(firefox, &spans->spans[i]);
	}
	add_label_markers(firefox, spans);
	put_samples(firefox, spans);
	put_markers(firefox);
	json_close(json, '}');
}

static struct error *write_firefox(const struct report *report, FILE *stream)
{
	struct firefox firefox = {
	    .json = {.stream = stream},
	    .report = report,
	    .profile = report->profile,
	};
	struct json *json = &firefox.json;
	size_t n_threads;
	_cleanup_free_ struct thread_spans *threads =
	    timeline_by_thread(report->timeline, &n_threads);

	firefox_tables_init(&firefox.tables, report);
	json_open(json, '{');
	put_meta(&firefox);
	json_key_open(json, "threads", '[');
	for (size_t i = 0; i < n_threads; i++)
		put_thread(&firefox, &threads[i]);
	json_close(json, ']');
	json_key_open(json, "pages", '[');
	json_close(json, ']');
	firefox_tables_put(&firefox.tables, json);
	json_close(json, '}');
	putc('\n', stream);
	firefox_tables_deinit(&firefox.tables);
	free(firefox.markers);
	return NULL;
}

const struct writer writer_firefox = {
    .name = "firefox",
    .suffixes = (const char *const[]){".firefox.json", NULL},
    .default_suffix = ".firefox.json",
    .next_command = "samply load %s",
    .shows_time = true,
    .write = write_firefox,
};

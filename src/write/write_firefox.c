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

enum { FORMAT_VERSION = 66, GECKO_VERSION = 30, MARKER_INTERVAL = 1 };

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

static void firefox_tables_deinit(struct firefox_tables *tables)
{
	frame_table_deinit(&tables->frames);
	free(tables->leaf_frames);
	free(tables->stacks);
	hash_index_deinit(&tables->frame_index);
	hash_index_deinit(&tables->stack_index);
	*tables = (struct firefox_tables){0};
}

static uint32_t add_frame(struct firefox_tables *tables, uint32_t frame, int category)
{
	const struct firefox_frame added = {.frame = frame, .category = category};

	return hash_intern(&tables->frame_index, tables->leaf_frames, tables->n_leaf_frames,
	                   tables->leaf_frames_capacity, added, sizeof(added));
}

static uint32_t add_stack(struct firefox_tables *tables, uint32_t frame, uint32_t parent)
{
	const struct firefox_stack added = {.frame = frame, .parent = parent};

	return hash_intern(&tables->stack_index, tables->stacks, tables->n_stacks,
	                   tables->stacks_capacity, added, sizeof(added));
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

#define NONE INT64_MIN // null

static void put_cell(struct json *json, int64_t value)
{
	if (value == NONE)
		json_null(json);
	else
		json_int(json, value);
}

// Writes a column of `n` numbers: what `value` is for each i.
#define PUT_COLUMN(json, key, n, value)                                                            \
	do {                                                                                       \
		json_key_open((json), (key), '[');                                                 \
		for (size_t i = 0; i < (size_t)(n); i++)                                           \
			put_cell((json), (value));                                                 \
		json_close((json), ']');                                                           \
	} while (0)

static void put_falses(struct json *json, const char *key, size_t n)
{
	json_key_open(json, key, '[');
	for (size_t i = 0; i < n; i++)
		json_bool(json, false);
	json_close(json, ']');
}

static void put_stack_table(const struct firefox_tables *tables, struct json *json)
{
	const struct firefox_stack *stacks = tables->stacks;
	const size_t n = tables->n_stacks;

	json_key_open(json, "stackTable", '{');
	PUT_COLUMN(json, "frame", n, stacks[i].frame);
	PUT_COLUMN(json, "prefixOffset", n,
	           stacks[i].parent == NO_PARENT ? 0 : (int64_t)i - stacks[i].parent);
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
	PUT_COLUMN(json, "func", n, frame_at(tables, i)->function);
	PUT_COLUMN(json, "category", n,
	           tables->leaf_frames[i].category < 0 ? NONE : tables->leaf_frames[i].category);
	PUT_COLUMN(json, "line", n, frame_at(tables, i)->line ?: NONE);
	PUT_COLUMN(json, "subcategory", n, 0);
	PUT_COLUMN(json, "address", n, -1);
	PUT_COLUMN(json, "inlineDepth", n, 0);
	PUT_COLUMN(json, "innerWindowID", n, 0);
	PUT_COLUMN(json, "column", n, NONE);
	PUT_COLUMN(json, "nativeSymbol", n, NONE);
	PUT_COLUMN(json, "originalLocation", n, NONE);
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
	const struct frame_function *functions = tables->frames.functions;
	const size_t n = tables->frames.n_functions;

	json_key_open(json, "funcTable", '{');
	PUT_COLUMN(json, "name", n, functions[i].name);
	put_falses(json, "isJS", n);
	put_falses(json, "relevantForJS", n);
	PUT_COLUMN(json, "resource", n, resources[functions[i].module]);
	PUT_COLUMN(json, "source", n,
	           sources[functions[i].file] < 0 ? NONE : sources[functions[i].file]);
	PUT_COLUMN(json, "lineNumber", n, functions[i].start_line ?: NONE);
	PUT_COLUMN(json, "columnNumber", n, NONE);
	PUT_COLUMN(json, "originalLocation", n, NONE);
	json_key_int(json, "length", (int64_t)n);
	json_close(json, '}');
}

static void put_libs(const struct firefox_tables *tables, const uint32_t *modules, size_t n,
                     struct json *json)
{
	json_key_open(json, "libs", '[');
	for (size_t i = 0; i < n; i++) {
		const char *path = frame_table_string(&tables->frames, modules[i]);
		const char *name = text_base_name(path);
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
	PUT_COLUMN(json, "lib", n, (int64_t)i);
	PUT_COLUMN(json, "name", n,
	           string_table_intern(&tables->frames.strings, text_base_name(frame_table_string(
	                                                            &tables->frames, modules[i]))));
	PUT_COLUMN(json, "host", n, NONE);
	PUT_COLUMN(json, "type", n, RESOURCE_LIBRARY);
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
	PUT_COLUMN(json, "id", n, NONE);
	PUT_COLUMN(json, "startLine", n, NONE);
	PUT_COLUMN(json, "startColumn", n, NONE);
	PUT_COLUMN(json, "sourceMapURL", n, NONE);
	PUT_COLUMN(json, "content", n, NONE);
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
		json_key_string(json, "name", categories[i].name);
		json_key_string(json, "color", categories[i].color);
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
	json_key_clean(json, "product", process[0] ? process : "profiler");
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
		json_key_string(json, "type", "Wait");
		json_key_clean(json, "descriptor", what);
	}
	json_close(json, '}');
}

static void put_markers(struct firefox *firefox)
{
	struct json *json = &firefox->json;
	const int64_t start_ns = firefox->profile->start_ns;
	const size_t n = firefox->n_markers;

	json_key_open(json, "markers", '{');
	PUT_COLUMN(json, "name", n, firefox->markers[i].name);
	json_key_open(json, "startTime", '[');
	for (size_t i = 0; i < n; i++)
		json_time(json, firefox->markers[i].start_ns - start_ns, NS_PER_MS);
	json_close(json, ']');
	json_key_open(json, "endTime", '[');
	for (size_t i = 0; i < n; i++)
		json_time(json, firefox->markers[i].end_ns - start_ns, NS_PER_MS);
	json_close(json, ']');
	PUT_COLUMN(json, "phase", n, MARKER_INTERVAL);
	PUT_COLUMN(json, "category", n, firefox->markers[i].category);
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
	struct json *json = &firefox->json;
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", thread->pid);
	json_open(json, '{');
	json_key_string(json, "processType", "default");
	json_key_clean(json, "processName", process);
	json_key_clean(json, "name", name);
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

	frame_table_init(&firefox.tables.frames, report);
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

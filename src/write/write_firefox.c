// SPDX-License-Identifier: MIT
// Firefox Profiler's processed profile format, version 66
// (docs-developer/processed-profile-format.md and src/types/profile.ts in
// firefox-devtools/profiler): columnar tables that all threads share, and samples and markers of
// each thread.
//
// A span is one sample, weighted with its ticks. The category of its leaf is the thread's state.
// Markers show the system calls that a thread waits in, what goroutines wait for, labels, and
// missed ticks.
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "firefox_tables.h"
#include "frame_name.h"
#include "json.h"
#include "labels.h"
#include "memory.h"
#include "text.h"
#include "timeline.h"
#include "writer.h"

enum { FORMAT_VERSION = 66, GECKO_VERSION = 30, MARKER_INSTANT = 0, MARKER_INTERVAL = 1 };

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
	// A goroutine that comes back to a wait waits anew, so that only a system call is
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

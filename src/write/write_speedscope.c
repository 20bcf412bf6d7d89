// SPDX-License-Identifier: MIT
// speedscope's own format: a sampled profile for each thread, in nanoseconds since the start. The
// schema is file-format-schema.json in the npm package speedscope.
#include "frame_name.h"
#include "frame_table.h"
#include "json.h"
#include "memory.h"
#include "timeline.h"
#include "writer.h"

static void put_frames(struct json *json, const struct frame_table *table)
{
	json_key_open(json, "shared", '{');
	json_key_open(json, "frames", '[');
	for (size_t i = 0; i < table->n_functions; i++) {
		const struct frame_function *function = &table->functions[i];
		const char *file = frame_table_string(table, function->file);
		json_open(json, '{');
		json_key_string(json, "name", frame_table_string(table, function->name));
		if (file[0])
			json_key_string(json, "file", file);
		if (function->start_line)
			json_key_int(json, "line", function->start_line);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

static void put_stack(struct json *json, struct frame_table *table, const struct sample *sample)
{
	size_t n;
	const uint32_t *frames = frame_table_stack(table, sample, &n);

	json_open(json, '[');
	for (size_t i = 0; i < n; i++)
		json_int(json, table->frames[frames[i]].function);
	json_close(json, ']');
}

// Writes the samples; a gap between two spans is a sample with an empty stack.
static void put_samples(struct json *json, struct frame_table *table,
                        const struct thread_spans *thread)
{
	int64_t at_ns = thread->spans[0].start_ns;

	json_key_open(json, "samples", '[');
	for (size_t i = 0; i < thread->count; i++) {
		const struct span *span = &thread->spans[i];
		if (span->start_ns > at_ns) {
			json_open(json, '[');
			json_close(json, ']');
		}
		put_stack(json, table, &table->report->profile->samples[span->sample]);
		at_ns = span->end_ns;
	}
	json_close(json, ']');
	at_ns = thread->spans[0].start_ns;
	json_key_open(json, "weights", '[');
	for (size_t i = 0; i < thread->count; i++) {
		const struct span *span = &thread->spans[i];
		if (span->start_ns > at_ns)
			json_int(json, span->start_ns - at_ns);
		json_int(json, span->end_ns - span->start_ns);
		at_ns = span->end_ns;
	}
	json_close(json, ']');
}

static void put_thread(struct json *json, struct frame_table *table,
                       const struct thread_spans *spans)
{
	const struct profile *profile = table->report->profile;
	const struct thread *thread = &profile->threads[spans->thread];
	_cleanup_free_ char *name = frame_name_track(profile, spans);
	_cleanup_free_ char *text =
	    thread->is_task ? memory_strdup(name) : memory_printf("%s (%d)", name, thread->tid);
	_cleanup_free_ char *process =
	    table->report->process_roots
	        ? memory_printf("%s %s", profile_process_of(profile, thread), text)
	        : memory_strdup(text);

	json_open(json, '{');
	json_key_string(json, "type", "sampled");
	json_key_clean(json, "name", process);
	json_key_string(json, "unit", "nanoseconds");
	json_key_int(json, "startValue", spans->spans[0].start_ns - profile->start_ns);
	json_key_int(json, "endValue", spans->spans[spans->count - 1].end_ns - profile->start_ns);
	put_samples(json, table, spans);
	json_close(json, '}');
}

// Returns the thread that ran longest, which is shown first; the first of them if none ran.
static size_t find_busiest(const struct profile *profile, const struct thread_spans *threads,
                           size_t n_threads)
{
	size_t busiest = 0;
	int64_t longest_ns = 0;

	for (size_t i = 0; i < n_threads; i++) {
		int64_t ran_ns = 0;
		for (size_t j = 0; j < threads[i].count; j++) {
			const struct span *span = &threads[i].spans[j];
			if (profile->samples[span->sample].state == THREAD_RUNNING)
				ran_ns += span->end_ns - span->start_ns;
		}
		if (ran_ns > longest_ns) {
			longest_ns = ran_ns;
			busiest = i;
		}
	}
	return busiest;
}

static struct error *write_speedscope(const struct report *report, FILE *stream)
{
	struct json json = {.stream = stream};
	struct frame_table table;
	const char *process = profile_process_name(report->profile, report->pid);
	_cleanup_free_ char *name = memory_printf("%s (%d)", process, report->pid);
	size_t n_threads;
	_cleanup_free_ struct thread_spans *threads =
	    timeline_by_thread(report->timeline, &n_threads);

	frame_table_init(&table, report);
	json_open(&json, '{');
	json_key_string(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_key_string(&json, "exporter", "profiler " PROFILER_VERSION);
	json_key_clean(&json, "name", name);
	json_key_int(&json, "activeProfileIndex",
	             (int64_t)find_busiest(report->profile, threads, n_threads));
	json_key_open(&json, "profiles", '[');
	for (size_t i = 0; i < n_threads; i++)
		put_thread(&json, &table, &threads[i]);
	json_close(&json, ']');
	put_frames(&json, &table);
	json_close(&json, '}');
	putc('\n', stream);
	frame_table_deinit(&table);
	return NULL;
}

const struct writer writer_speedscope = {
    .name = "speedscope",
    .suffixes = (const char *const[]){".speedscope.json", NULL},
    .default_suffix = ".speedscope.json",
    .next_command = "speedscope %s",
    .shows_time = true,
    .write = write_speedscope,
};

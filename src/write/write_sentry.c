// SPDX-License-Identifier: MIT
// Sentry's sample format, version 2: a profile chunk (develop.sentry.dev, "Profiles"). Each tick is
// one sample.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "clock.h"
#include "error.h"
#include "frame_name.h"
#include "frame_table.h"
#include "hash.h"
#include "json.h"
#include "memory.h"
#include "text.h"
#include "timeline.h"
#include "writer.h"

enum {
	ID_BYTES = 16,
	MAX_SAMPLES = 1 << 20, // a minute of 176 threads at 99 Hz
};

struct sentry {
	struct json json;
	struct frame_table table;
	const struct profile *profile;
	struct hash_index stack_index;
	uint32_t *stacks; // by stack: a sample that has it, to find its frames
	size_t n_stacks, stacks_capacity;
};

// Writes an id of 32 hexadecimal digits, like a UUID's.
static void put_id(struct json *json, const char *key)
{
	uint8_t bytes[ID_BYTES] = {0};
	char text[2 * ID_BYTES + 1];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		memcpy(bytes, &(int64_t){clock_now_ns()}, sizeof(int64_t));
	for (size_t i = 0; i < ID_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	json_key_string(json, key, text);
}

static bool stack_equal(const void *context, uint32_t id, const void *key)
{
	const struct sentry *sentry = context;
	const struct sample *a = &sentry->profile->samples[sentry->stacks[id]], *b = key;

	return a->stack == b->stack && a->wait == b->wait;
}

static uint32_t stack_id(struct sentry *sentry, uint32_t sample_id)
{
	const struct sample *sample = &sentry->profile->samples[sample_id];
	const uint64_t hash = hash_mix(sample->stack, sample->wait);
	uint32_t id = hash_index_find(&sentry->stack_index, hash, stack_equal, sentry, sample);

	if (id != HASH_NONE)
		return id;
	id = (uint32_t)sentry->n_stacks;
	*array_push(sentry->stacks, sentry->n_stacks, sentry->stacks_capacity) = sample_id;
	hash_index_insert(&sentry->stack_index, hash, id);
	return id;
}

// Returns the time of tick k of n: start + k * (end - start) / n (slice.h).
static int64_t tick_ns(const struct span *span, uint64_t k)
{
	const uint64_t length_ns = (uint64_t)(span->end_ns - span->start_ns);

	return span->start_ns + (int64_t)((unsigned __int128)length_ns * k / span->count);
}

struct tick {
	int64_t ns;
	uint32_t stack, thread;
};

static int compare_ticks(const void *a_pointer, const void *b_pointer)
{
	const struct tick *a = a_pointer, *b = b_pointer;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

// Collects all ticks of all threads, in the order of time. The caller frees them.
static struct tick *collect_ticks(struct sentry *sentry, const struct timeline *timeline,
                                  size_t *ret_count)
{
	struct tick *ticks = NULL;
	size_t count = 0, capacity = 0;

	for (size_t i = 0; i < timeline->n_spans; i++) {
		const struct span *span = &timeline->spans[i];
		const uint32_t stack = stack_id(sentry, span->sample);
		for (uint64_t k = 1; k <= span->count; k++)
			*array_push(ticks, count, capacity) =
			    (struct tick){tick_ns(span, k), stack, span->thread};
	}
	if (count > 0)
		qsort(ticks, count, sizeof(*ticks), compare_ticks);
	*ret_count = count;
	return ticks;
}

// Refuses too many samples: a few bytes of a recording can stand for any number of ticks.
static struct error *check_size(const struct timeline *timeline)
{
	uint64_t n = 0;

	for (size_t i = 0; i < timeline->n_spans; i++)
		n += timeline->spans[i].count;
	if (n <= MAX_SAMPLES)
		return NULL;
	return error_create(EXIT_STATUS_USAGE,
	                    "%" PRIu64 " samples are more than the sentry format is written for "
	                    "(%d): choose a part of the time with --from and --to, or --thread",
	                    n, MAX_SAMPLES);
}

static void put_samples(struct sentry *sentry, const struct timeline *timeline)
{
	const struct profile *profile = sentry->profile;
	struct json *json = &sentry->json;
	size_t n;
	_cleanup_free_ struct tick *ticks = collect_ticks(sentry, timeline, &n);

	json_key_open(json, "samples", '[');
	for (size_t i = 0; i < n && !ferror(json->stream); i++) {
		char tid[16];
		snprintf(tid, sizeof(tid), "%d", profile->threads[ticks[i].thread].tid);
		json_open(json, '{');
		json_key(json, "timestamp");
		json_time(json, profile->start_time_ns + ticks[i].ns - profile->start_ns,
		          NS_PER_SECOND);
		json_key_int(json, "stack_id", ticks[i].stack);
		json_key_string(json, "thread_id", tid);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_stacks(struct sentry *sentry)
{
	struct json *json = &sentry->json;

	json_key_open(json, "stacks", '[');
	for (size_t i = 0; i < sentry->n_stacks; i++) {
		size_t n;
		const uint32_t *frames = frame_table_stack(
		    &sentry->table, &sentry->profile->samples[sentry->stacks[i]], &n);
		json_open(json, '[');
		while (n-- > 0) // so that the leaf comes first
			json_int(json, frames[n]);
		json_close(json, ']');
	}
	json_close(json, ']');
}

static void put_frames(struct sentry *sentry)
{
	const struct frame_table *table = &sentry->table;
	struct json *json = &sentry->json;

	json_key_open(json, "frames", '[');
	for (size_t i = 0; i < table->n_frames; i++) {
		const struct frame *frame = &table->frames[i];
		const struct frame_function *function = &table->functions[frame->function];
		const char *file = frame_table_string(table, function->file);
		const char *module = frame_table_string(table, function->module);
		json_open(json, '{');
		json_key_string(json, "function", frame_table_string(table, function->name));
		if (file[0]) {
			json_key_string(json, "abs_path", file);
			json_key_string(json, "filename", text_base_name(file));
		}
		if (frame->line)
			json_key_int(json, "lineno", frame->line);
		if (module[0])
			json_key_string(json, "module", module);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_threads(struct sentry *sentry, const struct thread_spans *threads, size_t n)
{
	struct json *json = &sentry->json;

	json_key_open(json, "thread_metadata", '{');
	for (size_t i = 0; i < n; i++) {
		const struct thread *thread = &sentry->profile->threads[threads[i].thread];
		_cleanup_free_ char *name = frame_name_track(sentry->profile, &threads[i]);
		char tid[16];
		if (i > 0 && sentry->profile->threads[threads[i - 1].thread].tid == thread->tid)
			continue; // a thread with this tid has been written
		snprintf(tid, sizeof(tid), "%d", thread->tid);
		json_key_open(json, tid, '{');
		json_key_clean(json, "name", name);
		json_close(json, '}');
	}
	json_close(json, '}');
}

static struct error *write_sentry(const struct report *report, FILE *stream)
{
	struct sentry sentry = {.json = {.stream = stream}, .profile = report->profile};
	struct json *json = &sentry.json;
	struct error *error = check_size(report->timeline);
	size_t n;

	if (error)
		return error;
	_cleanup_free_ struct thread_spans *threads = timeline_by_thread(report->timeline, &n);
	frame_table_init(&sentry.table, report);
	json_open(json, '{');
	json_key_string(json, "version", "2");
	put_id(json, "profiler_id");
	put_id(json, "chunk_id");
	json_key_string(json, "platform", "native");
	json_key_string(json, "release", "");
	json_key_string(json, "environment", "production");
	json_key_open(json, "client_sdk", '{');
	json_key_string(json, "name", "profiler");
	json_key_string(json, "version", PROFILER_VERSION);
	json_close(json, '}');
	json_key_open(json, "profile", '{');
	put_samples(&sentry, report->timeline);
	put_stacks(&sentry);
	put_frames(&sentry);
	put_threads(&sentry, threads, n);
	json_close(json, '}');
	json_close(json, '}');
	putc('\n', stream);
	frame_table_deinit(&sentry.table);
	hash_index_deinit(&sentry.stack_index);
	free(sentry.stacks);
	return NULL;
}

const struct writer writer_sentry = {
    .name = "sentry",
    .suffixes = (const char *const[]){".sentry.json", NULL},
    .default_suffix = ".sentry.json",
    .shows_time = true,
    .write = write_sentry,
};

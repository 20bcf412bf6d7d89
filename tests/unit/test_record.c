// SPDX-License-Identifier: MIT
// A recording says what the profile says: of made-up runs of all kinds, whole and damaged.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "error.h"
#include "hash.h"
#include "labels.h"
#include "memory.h"
#include "record.h"
#include "record_copy.h"
#include "record_writer.h"
#include "recording.h"
#include "run_stats.h"
#include "unit.h"

enum { MAX_THREADS = 40, MAX_FRAMES = 12, N_RUNS = 60 };

#define PERIOD_NS (10 * NS_PER_MS)

// What is recorded, and the stream of spans as it came, to be compared.
struct made {
	uint64_t seed;
	struct profile profile;
	struct modules modules;
	struct symbols symbols;
	struct run_stats stats;
	struct cpu_log cpu_log;
	struct span_follower follower;
	uint64_t spans; // a sum of hashes of the spans, in whatever order
	int fd;
	struct record_writer *writer;
	uint32_t threads[MAX_THREADS];
	size_t n_threads;
};

static uint64_t draw(struct made *made, uint64_t n)
{
	return hash_mix(made->seed++, 12345) % n;
}

// A span by what it means: times, thread, state, wait and frames, but no numbers of ours.
static uint64_t span_hash(const struct profile *profile, const struct modules *modules,
                          const struct span *span)
{
	const struct sample *sample = &profile->samples[span->sample];
	const struct stack *stack = &profile->stacks[sample->stack];
	const struct thread *thread = &profile->threads[span->thread];
	uint64_t hash = hash_mix((uint64_t)thread->tid << 32 | thread->pid, sample->state);

	hash = hash_mix(hash, span->count);
	hash = hash_mix(hash, span->start_ns - profile->start_ns);
	hash = hash_mix(hash, span->end_ns - profile->start_ns);
	hash = hash_mix(hash, stack->end * 2 + stack->guessed);
	for (uint32_t i = 0; i < stack->n_frames; i++) {
		const struct location *location =
		    &profile->locations[profile->location_ids[stack->first + i]];
		const char *path = modules->items[location->module]->path;
		hash = hash_mix(hash, hash_bytes(path, strlen(path)));
		hash = hash_mix(hash, hash_mix(location->address, location->code));
	}
	if (sample->wait != WAIT_NONE) {
		const struct wait *wait = &profile->waits[sample->wait];
		hash = hash_mix(hash, wait->syscall);
		hash = hash_mix(hash, hash_bytes(wait->descriptor, strlen(wait->descriptor)));
	}
	if (sample->labels != LABELS_NONE) {
		const char *labels = profile->labels[sample->labels];
		hash = hash_mix(hash, hash_bytes(labels, strlen(labels)));
	}
	return hash;
}

// None, one, or two.
static uint32_t make_labels(struct made *made)
{
	_cleanup_free_ char *text = NULL;
	uint64_t n = draw(made, 3);

	if (n > 0)
		labels_add(&text, "gil", draw(made, 2) ? "holding" : "waiting");
	if (n > 1)
		labels_add(&text, "task", "a\tb=\n");
	return profile_intern_labels(&made->profile, text);
}

struct listener {
	struct span_follower follower;
	const struct modules *modules;
	uint64_t spans;
};

static void listen(struct span_follower *follower, const struct profile *profile, uint32_t thread,
                   const struct span *ended)
{
	struct listener *listener = (struct listener *)follower;

	assert_true(ended->count == 0 || ended->thread == thread);
	if (ended->count > 0)
		listener->spans += span_hash(profile, listener->modules, ended);
}

static void add_module(struct made *made)
{
	_cleanup_free_ char *path = memory_printf("/lib/made-%zu.so", made->modules.count);
	struct module *module =
	    modules_add(&made->modules, MODULE_FILE, path, 1, made->modules.count + 1, -1);

	module->build_id_size = draw(made, 21);
	for (size_t i = 0; i < module->build_id_size; i++)
		module->build_id[i] = draw(made, 256);
	module_add_mapping(module, &(struct module_mapping){.start = 0x1000 * (module->index + 1),
	                                                    .end = 0x1000 * (module->index + 2),
	                                                    .bias = draw(made, 1 << 30)});
}

static uint32_t make_stack(struct made *made)
{
	uint32_t ids[MAX_FRAMES];
	const size_t n = draw(made, MAX_FRAMES);

	for (size_t i = 0; i < n; i++)
		ids[i] = profile_intern_code(&made->profile, draw(made, made->modules.count),
		                             draw(made, 30) << draw(made, 58), draw(made, 8) == 0);
	return profile_intern_stack(&made->profile, ids, n,
	                            (enum stack_end)draw(made, N_STACK_ENDS), draw(made, 2));
}

static void make_tick(struct made *made, int64_t now_ns)
{
	struct profile *profile = &made->profile;

	if (draw(made, 20) == 0)
		add_module(made);
	if (made->n_threads < MAX_THREADS && draw(made, 4) == 0) {
		_cleanup_free_ char *name = memory_printf("t\xff;%zu", made->n_threads);
		made->threads[made->n_threads] =
		    profile_add_thread(profile, 7, 1000 + (int)made->n_threads, name, now_ns);
		made->n_threads++;
	}
	for (size_t i = 0; i < made->n_threads; i++) {
		const uint32_t id = made->threads[i];
		const struct thread *thread = &profile->threads[id];
		if (thread->ended)
			continue;
		if (thread->span.count > 0 && draw(made, 3)) { // sleeps on
			profile_count_again(profile, thread->span.sample, 1, now_ns);
			made->stats.samples++;
			continue;
		}
		if (draw(made, 50) == 0) {
			profile_end_thread(profile, id);
			continue;
		}
		const uint64_t ticks = draw(made, 5) ? 1 : 1 + draw(made, 9);
		// One that was pending is counted late.
		int64_t late_ns = draw(made, 5) ? now_ns : now_ns - (int64_t)draw(made, PERIOD_NS);
		late_ns = late_ns < thread->last_ns ? thread->last_ns : late_ns;
		const uint32_t wait =
		    draw(made, 3)
		        ? WAIT_NONE
		        : profile_intern_wait(profile, (int)draw(made, 300), "socket:[1]", "");
		profile_label_thread(profile, id, make_labels(made));
		profile_count(profile, id, make_stack(made),
		              (enum thread_state)draw(made, N_THREAD_STATES), wait, ticks, late_ns);
		made->stats.samples += ticks;
		if (draw(made, 9) == 0)
			profile_rename_thread(profile, id, draw(made, 2) ? "renamed" : "");
	}
	if (profile->n_waits > 1 && draw(made, 5) == 0)
		profile_explain_descriptor(profile, 1,
		                           draw(made, 2) ? "tcp 1.2.3.4:5"
		                                         : "tcp 1.2.3.4:5, other end: \"x\" 7");
}

static void make_symbols(struct made *made)
{
	struct symbols *symbols = &made->symbols;
	size_t lines_capacity = 0, functions_capacity = 0;

	symbols->n_locations = made->profile.n_locations;
	symbols->locations = memory_alloc_zeroed(symbols->n_locations, sizeof(*symbols->locations));
	for (size_t i = 0; i < symbols->n_locations; i++) {
		struct location_lines *lines = &symbols->locations[i];
		lines->first = symbols->n_lines;
		lines->count = draw(made, 3);
		for (uint32_t k = 0; k < lines->count; k++) {
			if (symbols->n_functions == 0 || draw(made, 2))
				*array_push(symbols->functions, symbols->n_functions,
				            functions_capacity) = (struct function){
				    .name = memory_printf("f%zu", symbols->n_functions),
				    .system_name = memory_strdup("_Z1f"),
				    .file = memory_strdup("/a.c"),
				    .start_line = 3};
			*array_push(symbols->lines, symbols->n_lines, lines_capacity) =
			    (struct line){.function = draw(made, symbols->n_functions), .line = k};
		}
	}
}

static void add_cpu_waits(struct made *made, int64_t at_ns)
{
	cpu_log_add(&made->cpu_log, &(struct cpu_waits){
	                                .at_ns = at_ns,
	                                .cpu_ns = (int64_t)draw(made, INT64_MAX / 4),
	                                .delay_ns = (int64_t)draw(made, 1000),
	                                .n_cpus = (uint32_t)draw(made, 4),
	                                .limit = (uint32_t)draw(made, 4),
	                                .n_periods = draw(made, 100),
	                                .n_throttled = draw(made, 100),
	                                .throttled_ns = (int64_t)draw(made, 1 << 30),
	                            });
}

// The stream's bytes, or the file's; the caller frees.
static uint8_t *read_bytes(const struct made *made, size_t *ret_size)
{
	const off_t size = lseek(made->fd, 0, SEEK_END);
	uint8_t *bytes = memory_alloc(size);

	assert_int_equal(pread(made->fd, bytes, size, 0), size);
	*ret_size = size;
	return bytes;
}

// Makes a file of the stream, as its reader does.
static void copy_stream(struct made *made, uint64_t max_bytes)
{
	struct record_copy copy = {
	    .fd = memfd_create("file", MFD_CLOEXEC),
	    .max_bytes = max_bytes,
	};
	struct recording recording;
	size_t size, n;

	_cleanup_free_ uint8_t *bytes = read_bytes(made, &size);
	recording_begin_stream(&recording);
	recording.copy = &copy;
	for (size_t at = 0; at < size; at += n) {
		n = 1 + draw(made, 5000);
		n = n < size - at ? n : size - at;
		assert_true(recording_feed(&recording, bytes + at, n));
	}
	recording_end_stream(&recording);
	record_copy_finish(&copy, &recording, &made->symbols);
	assert_int_equal(copy.failed, 0);
	record_copy_deinit(&copy);
	recording_deinit(&recording);
	close(made->fd);
	made->fd = copy.fd;
}

static void make(struct made *made, uint64_t seed, int n_ticks, uint64_t max_bytes)
{
	struct listener listener = {.follower.changed = listen, .modules = &made->modules};
	int64_t now_ns;

	*made = (struct made){.seed = seed << 32, .fd = memfd_create("recording", MFD_CLOEXEC)};
	assert_true(made->fd >= 0);
	made->profile.period_ns = PERIOD_NS;
	made->profile.start_time_ns = 1700000000 * NS_PER_SECOND;
	made->profile.start_ns = made->stats.start_ns = now_ns = 1 + (int64_t)draw(made, 1 << 30);
	add_module(made);
	made->writer = record_writer_create(
	    &(struct record_options){
	        .pid = 7, .max_bytes = max_bytes, .fd = made->fd, .cpu_log = &made->cpu_log},
	    &made->profile, &made->modules, &made->stats);
	profile_follow(&made->profile, &listener.follower);
	profile_name_process(&made->profile, 7, "made up");
	for (int i = 0; i < n_ticks; i++) {
		make_tick(made, now_ns);
		made->stats.ticks++;
		made->stats.last_ns = now_ns;
		made->stats.missed_ticks += draw(made, 2);
		made->stats.held_ns += draw(made, 1000);
		if (i > 0 && draw(made, 4) == 0)
			add_cpu_waits(made, now_ns - made->stats.start_ns);
		assert_true(record_writer_tick(made->writer));
		now_ns += PERIOD_NS + (int64_t)draw(made, NS_PER_MS);
	}
	// In some runs sampling ends in the midst of the last samples' period.
	made->stats.last_ns -= seed & 1 ? (int64_t)draw(made, PERIOD_NS) : 0;
	if (made->stats.last_ns < made->stats.start_ns)
		made->stats.last_ns = made->stats.start_ns;
	profile_end_watch(&made->profile, made->stats.last_ns);
	made->profile.duration_ns = made->stats.last_ns - made->stats.start_ns;
	made->spans = listener.spans;
	make_symbols(made);
	assert_true(record_writer_finish(made->writer, "a comment"));
	copy_stream(made, max_bytes);
}

static void made_deinit(struct made *made)
{
	record_writer_destroy(made->writer);
	profile_deinit(&made->profile);
	modules_deinit(&made->modules);
	symbols_deinit(&made->symbols);
	cpu_log_deinit(&made->cpu_log);
	close(made->fd);
}

static uint64_t count_samples(const struct profile *profile)
{
	uint64_t n = 0;

	for (size_t i = 0; i < profile->n_samples; i++)
		n += profile->samples[i].count;
	return n;
}

static void replay(struct recording *recording, struct listener *listener, uint8_t *bytes,
                   size_t size)
{
	assert_null(recording_open_bytes("made", bytes, size, recording));
	*listener = (struct listener){.follower.changed = listen, .modules = &recording->modules};
	profile_follow(&recording->profile, &listener->follower);
	recording_replay(recording);
}

static void compare_threads(const struct profile *a, const struct profile *b)
{
	assert_int_equal(a->n_threads, b->n_threads);
	for (size_t i = 0; i < a->n_threads; i++) {
		assert_int_equal(a->threads[i].tid, b->threads[i].tid);
		assert_string_equal(a->threads[i].name, b->threads[i].name);
		assert_int_equal(a->threads[i].first_ns - a->start_ns,
		                 b->threads[i].first_ns - b->start_ns);
		assert_int_equal(a->threads[i].last_ns - a->start_ns,
		                 b->threads[i].last_ns - b->start_ns);
		assert_int_equal(a->threads[i].ended, b->threads[i].ended);
	}
}

// What was known of them at last.
static void compare_waits(const struct profile *a, struct profile *b)
{
	for (size_t i = 0; i < a->n_waits; i++) {
		const struct wait *x = &a->waits[i];
		const uint32_t y = profile_intern_wait(b, x->syscall, x->descriptor, x->frames);
		assert_string_equal(x->meaning ?: "", b->waits[y].meaning ?: "");
	}
}

static void compare_symbols(const struct made *made, const struct recording *recording)
{
	const struct symbols *a = &made->symbols, *b = &recording->symbols;

	assert_int_equal(a->n_locations, b->n_locations);
	for (size_t i = 0; i < a->n_locations; i++) {
		assert_int_equal(a->locations[i].count, b->locations[i].count);
		for (uint32_t k = 0; k < a->locations[i].count; k++) {
			const struct line *x = &a->lines[a->locations[i].first + k];
			const struct line *y = &b->lines[b->locations[i].first + k];
			assert_int_equal(x->line, y->line);
			assert_string_equal(a->functions[x->function].name,
			                    b->functions[y->function].name);
			assert_string_equal(a->functions[x->function].file,
			                    b->functions[y->function].file);
		}
	}
}

static void test_round_trip(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < N_RUNS; seed++) {
		struct recording recording;
		struct listener listener;
		struct made made;
		size_t size;

		make(&made, seed, 1 + (int)seed * 3, 0);
		uint8_t *bytes = read_bytes(&made, &size);
		replay(&recording, &listener, bytes, size);
		assert_int_equal(listener.spans, made.spans);
		assert_int_equal(count_samples(&recording.profile), made.stats.samples);
		assert_true(recording.whole && !recording.full);
		assert_int_equal(recording.lost_bytes + recording.lost_blocks +
		                     recording.bad_records + recording.lost_stacks,
		                 0);
		assert_int_equal(recording.ticks, made.stats.ticks);
		assert_int_equal(recording.missed_ticks, made.stats.missed_ticks);
		assert_int_equal(recording.held_ns, made.stats.held_ns);
		assert_int_equal(recording.profile.duration_ns, made.profile.duration_ns);
		assert_int_equal(recording.profile.start_time_ns, made.profile.start_time_ns);
		assert_int_equal(recording.pid, 7);
		assert_string_equal(recording.comment, "a comment");
		assert_string_equal(profile_process_name(&recording.profile, 7), "made up");
		compare_threads(&made.profile, &recording.profile);
		compare_waits(&made.profile, &recording.profile);
		compare_symbols(&made, &recording);
		assert_int_equal(recording.cpu_log.count, made.cpu_log.count);
		if (made.cpu_log.count > 0)
			assert_memory_equal(recording.cpu_log.items, made.cpu_log.items,
			                    made.cpu_log.count * sizeof(*made.cpu_log.items));
		for (size_t i = 0; i < made.modules.count; i++) {
			const struct module *a = made.modules.items[i];
			const struct module *b = recording.modules.items[i];
			assert_int_equal(a->build_id_size, b->build_id_size);
			assert_memory_equal(a->build_id, b->build_id, a->build_id_size);
			assert_memory_equal(a->mappings, b->mappings, sizeof(*a->mappings));
		}
		recording_deinit(&recording);
		made_deinit(&made);
	}
}

// The end of the last whole block before `size`.
static size_t whole_bytes(const uint8_t *bytes, size_t size)
{
	size_t at = RECORD_HEADER_BYTES;

	while (at + RECORD_BLOCK_HEADER_BYTES <= size) {
		uint32_t length;
		memcpy(&length, bytes + at + 4, sizeof(length));
		if (at + RECORD_BLOCK_HEADER_BYTES + length > size)
			break;
		at += RECORD_BLOCK_HEADER_BYTES + length;
	}
	return at;
}

// Wherever it is cut, it is read to there, and what was cut off is told.
static void test_cut_short(void **state)
{
	struct made made;
	size_t size, last = 0;

	(void)state;
	make(&made, 77, 100, 0);
	_cleanup_free_ uint8_t *bytes = read_bytes(&made, &size);
	for (size_t cut = RECORD_HEADER_BYTES; cut < size; cut += 1 + draw(&made, 40)) {
		struct recording recording;
		struct listener listener;
		uint8_t *copy = memory_alloc(cut); // no longer, for the sanitizer
		memcpy(copy, bytes, cut);
		replay(&recording, &listener, copy, cut);
		const uint64_t samples = count_samples(&recording.profile);
		assert_false(recording.whole);
		assert_int_equal(recording.lost_bytes, cut - whole_bytes(bytes, cut));
		assert_int_equal(recording.bad_records, 0);
		// Samples of more than one tick are credited by time: there may be some too many.
		assert_true(samples <= made.stats.samples * 3 / 2 + MAX_THREADS);
		last = samples > last ? samples : last;
		recording_deinit(&recording);
	}
	assert_true(last >= made.stats.samples);
	made_deinit(&made);
}

// Wherever a byte is wrong, one block is lost and the others are read.
static void test_damaged(void **state)
{
	struct made made;
	size_t size;

	(void)state;
	make(&made, 78, 100, 0);
	_cleanup_free_ uint8_t *bytes = read_bytes(&made, &size);
	for (int i = 0; i < 300; i++) {
		struct recording recording;
		struct listener listener;
		uint8_t *copy = memory_alloc(size);
		memcpy(copy, bytes, size);
		copy[RECORD_HEADER_BYTES + draw(&made, size - RECORD_HEADER_BYTES)] ^=
		    1 << draw(&made, 8);
		replay(&recording, &listener, copy, size);
		assert_true(recording.lost_bytes > 0);
		assert_true(recording.lost_blocks == 1 || !recording.whole);
		assert_true(count_samples(&recording.profile) > 0);
		recording_deinit(&recording);
	}
	made_deinit(&made);
}

// --max-size: no byte more, and what was left out is counted.
static void test_max_size(void **state)
{
	const uint64_t max_bytes = 60000;
	struct recording recording;
	struct listener listener;
	struct made made;
	size_t size;

	(void)state;
	make(&made, 79, 1000, max_bytes);
	uint8_t *bytes = read_bytes(&made, &size);
	assert_true(size <= max_bytes && size > max_bytes / 2);
	replay(&recording, &listener, bytes, size);
	assert_true(recording.whole && recording.full);
	assert_true(recording.dropped_samples > 0);
	assert_int_equal(recording.dropped_samples + count_samples(&recording.profile),
	                 made.stats.samples);
	recording_deinit(&recording);
	made_deinit(&made);
}

// 8 threads that are elsewhere at each of 99 ticks a second: an hour takes no more than 20 MB. A
// tenth of it, with the stacks of a large program.
static void test_an_hour(void **state)
{
	enum { HZ = 99, SECONDS = 360, THREADS = 8, STACKS = 3000, DEPTH = 25 };
	struct made made = {.seed = 80, .fd = memfd_create("hour", MFD_CLOEXEC)};
	struct profile *profile = &made.profile;
	size_t size;

	(void)state;
	profile->period_ns = NS_PER_SECOND / HZ;
	profile->start_ns = 1;
	add_module(&made);
	made.writer = record_writer_create(&(struct record_options){.pid = 7, .fd = made.fd},
	                                   profile, &made.modules, &made.stats);
	for (int i = 0; i < THREADS; i++)
		profile_add_thread(profile, 7, 1000 + i, "thread", 1);
	for (int i = 0; i < HZ * SECONDS; i++) {
		const int64_t now_ns = 1 + i * profile->period_ns + (int64_t)draw(&made, NS_PER_MS);
		for (uint32_t t = 0; t < THREADS; t++) {
			uint32_t ids[DEPTH];
			const uint64_t which = draw(&made, STACKS);
			for (uint64_t k = 0; k < DEPTH; k++)
				ids[k] = profile_intern_location(
				    profile, 0, hash_mix(which >> (k / 2), k) % 100000);
			profile_count(
			    profile, t,
			    profile_intern_stack(profile, ids, DEPTH, STACK_COMPLETE, false),
			    THREAD_RUNNING, WAIT_NONE, 1, now_ns);
			made.stats.samples++;
		}
		made.stats.ticks++;
		made.stats.last_ns = now_ns;
		assert_true(record_writer_tick(made.writer));
	}
	profile_end_spans(profile);
	assert_true(record_writer_finish(made.writer, ""));
	free(read_bytes(&made, &size));
	print_message("# %zu bytes for %d s: %.1f MB an hour\n", size, SECONDS,
	              (double)size * 3600 / SECONDS / 1e6);
	assert_true(size <= 20000000 / (3600 / SECONDS));
	made_deinit(&made);
}

static void test_no_recording(void **state)
{
	static const char *const others[] = {"", "text", RECORD_MAGIC,
	                                     "main;f 12\nmain;g 13\n\n\n"};
	struct recording recording;

	(void)state;
	for (size_t i = 0; i < array_size(others); i++) {
		struct error *error = recording_open_bytes("x", (uint8_t *)memory_strdup(others[i]),
		                                           strlen(others[i]), &recording);
		assert_non_null(error);
		assert_non_null(strstr(error_message(error), "x is not a recording"));
		error_destroy(error);
	}
	char newer[RECORD_HEADER_BYTES] = RECORD_MAGIC "\x02";
	uint8_t *bytes = memory_alloc(sizeof(newer));
	memcpy(bytes, newer, sizeof(newer));
	struct error *error = recording_open_bytes("x", bytes, sizeof(newer), &recording);
	assert_non_null(strstr(error_message(error), "version 2"));
	error_destroy(error);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_round_trip), cmocka_unit_test(test_cut_short),
	    cmocka_unit_test(test_damaged),    cmocka_unit_test(test_max_size),
	    cmocka_unit_test(test_an_hour),    cmocka_unit_test(test_no_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// record_writer and recording: a stream whose reader lags behind, one of a run that forgets, and
// the files beside it.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "record_writer.h"
#include "recording.h"
#include "run_stats.h"
#include "unit.h"

enum {
	N_THREADS = 40, // the last one sleeps on, the one before ends while nobody reads
	SLEEPER = N_THREADS - 1,
	MORTAL = N_THREADS - 2,
	N_STACKS = 1000,
	STALLED_TICKS = 150000, // of some 8 bytes for each other thread: beyond 20 MB
	READ_TICKS = 200,
	CAUGHT_UP_TICKS = 1000, // a pipe's 64 kB for each
	PERIOD_NS = 10 * NS_PER_MS,
	N_FILES = 400,
	SOCKET_BYTES = 1 << 14, // a few messages
};

struct stream {
	struct profile profile;
	struct modules modules;
	struct run_stats stats;
	struct record_writer *writer;
	struct recording recording;
	uint32_t stacks[N_STACKS];
	int fds[2];
	int sockets[2];
	uint32_t sleep; // the sleeper's sample
	int64_t now_ns;
};

static void begin(struct stream *stream)
{
	*stream = (struct stream){.now_ns = NS_PER_SECOND};
	stream->profile.period_ns = PERIOD_NS;
	assert_int_equal(pipe2(stream->fds, O_NONBLOCK | O_CLOEXEC), 0);
	modules_add(&stream->modules, MODULE_ANONYMOUS, "[anon]", 0, 0, -1);
	for (uint32_t i = 0; i < N_STACKS; i++) {
		const uint32_t location = profile_intern_location(&stream->profile, 0, i);
		stream->stacks[i] =
		    profile_intern_stack(&stream->profile, &location, 1, STACK_COMPLETE, 0);
	}
	for (int i = 0; i < N_THREADS; i++)
		profile_add_thread(&stream->profile, 1, i + 1, "thread", stream->now_ns);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, stream->sockets), 0);
	stream->writer = record_writer_create(
	    &(struct record_options){
	        .pid = 1,
	        .fd = stream->fds[1],
	        .files = stream->sockets[1],
	    },
	    &stream->profile, &stream->modules, &stream->stats);
	profile_begin(&stream->profile, stream->now_ns);
	recording_begin_stream(&stream->recording);
}

// Each thread but the sleeper is somewhere else at each tick, and each in another state.
static void tick(struct stream *stream)
{
	stream->now_ns += PERIOD_NS;
	for (uint32_t i = 0; i < SLEEPER; i++) {
		const uint32_t stack = (uint32_t)(i * 7 + stream->stats.ticks) % N_STACKS;
		if (stream->profile.threads[i].ended)
			continue;
		profile_count(&stream->profile, i, stream->stacks[stack],
		              (enum thread_state)(i % N_THREAD_STATES), WAIT_NONE, 1,
		              stream->now_ns);
	}
	if (stream->stats.ticks == 0)
		stream->sleep = profile_count(&stream->profile, SLEEPER, stream->stacks[0],
		                              THREAD_SLEEPING, WAIT_NONE, 1, stream->now_ns);
	else
		profile_count_again(&stream->profile, stream->sleep, 1, stream->now_ns);
	stream->stats.ticks++;
	stream->stats.last_ns = stream->now_ns;
	assert_true(record_writer_tick(stream->writer));
}

static void read_all(struct stream *stream)
{
	uint8_t bytes[4096];
	ssize_t n;

	while ((n = read(stream->fds[0], bytes, sizeof(bytes))) > 0) {
		recording_take_files(&stream->recording, stream->sockets[0]);
		assert_true(recording_feed(&stream->recording, bytes, (size_t)n));
	}
}

static void end(struct stream *stream)
{
	recording_deinit(&stream->recording);
	record_writer_destroy(stream->writer);
	profile_deinit(&stream->profile);
	modules_deinit(&stream->modules);
	close(stream->fds[0]);
	close(stream->fds[1]);
	close(stream->sockets[0]);
	close(stream->sockets[1]);
}

struct sums {
	uint64_t count, lost, by_state[N_THREAD_STATES];
	int64_t wall_ns, cpu_ns;
};

static struct sums sums_of(const struct profile *profile, uint32_t thread)
{
	struct sums sums = {0};

	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		if (sample->thread != thread)
			continue;
		sums.count += sample->count;
		sums.by_state[sample->state] += sample->count;
		sums.wall_ns += sample->wall_ns;
		sums.cpu_ns += sample->cpu_ns;
		if (profile->stacks[sample->stack].end == STACK_NOT_SAMPLED)
			sums.lost += sample->count;
	}
	return sums;
}

// Whatever the reader misses: each thread has all its ticks and all its time.
static uint64_t compare(struct stream *stream)
{
	uint64_t n_lost = 0;

	for (uint32_t i = 0; i < N_THREADS; i++) {
		const struct sums wanted = sums_of(&stream->profile, i);
		const struct sums sums = sums_of(&stream->recording.profile, i);
		assert_int_equal(sums.count, wanted.count);
		assert_int_equal(sums.wall_ns, wanted.wall_ns);
		n_lost += sums.lost;
		if (i == SLEEPER)
			assert_int_equal(sums.lost, 0);
		// The ticks of each state are known, and their times by them.
		assert_memory_equal(sums.by_state, wanted.by_state, sizeof(wanted.by_state));
		assert_true(llabs(sums.cpu_ns - wanted.cpu_ns) <= 2 * PERIOD_NS);
	}
	return n_lost;
}

static void finish(struct stream *stream)
{
	profile_end_spans(&stream->profile);
	assert_true(record_writer_finish(stream->writer, "comment"));
	read_all(stream);
	recording_end_stream(&stream->recording);
	assert_true(stream->recording.whole);
	assert_int_equal(stream->recording.bad_records, 0);
	assert_int_equal(stream->recording.lost_stacks, 0);
}

static void test_read(void **state)
{
	struct stream stream;

	(void)state;
	begin(&stream);
	for (int i = 0; i < READ_TICKS; i++) {
		tick(&stream);
		read_all(&stream);
	}
	finish(&stream);
	assert_int_equal(compare(&stream), 0);
	assert_int_equal(stream.recording.dropped_samples, 0);
	end(&stream);
}

static void test_stalled(void **state)
{
	struct stream stream;

	(void)state;
	begin(&stream);
	for (int i = 0; i < READ_TICKS; i++) {
		tick(&stream);
		read_all(&stream);
	}
	for (int i = 0; i < STALLED_TICKS; i++) {
		if (i == STALLED_TICKS - 10)
			profile_end_thread(&stream.profile, MORTAL);
		tick(&stream);
	}
	for (int i = 0; i < CAUGHT_UP_TICKS; i++) {
		read_all(&stream);
		tick(&stream);
	}
	read_all(&stream);
	finish(&stream);
	const uint64_t n_lost = compare(&stream);
	assert_true(n_lost > 0);
	assert_int_equal(n_lost, stream.recording.dropped_samples);
	assert_true(stream.recording.profile.threads[MORTAL].ended);
	end(&stream);
}

static void add_file(struct stream *stream, int i)
{
	char path[32];

	snprintf(path, sizeof(path), "/lib/%d.so", i);
	const int fd = memfd_create(path, MFD_CLOEXEC);
	assert_int_equal(write(fd, path, strlen(path)), strlen(path));
	struct module *module =
	    modules_add(&stream->modules, MODULE_FILE, path, 1, (uint64_t)i, fd);
	module->user = (struct file_user){.known = true, .uid = (uid_t)i};
}

// Each module has its own file, though the socket is too small for all of them at once.
static void test_files(void **state)
{
	const int size = SOCKET_BYTES;
	struct stream stream;
	size_t n_files = 0;

	(void)state;
	begin(&stream);
	setsockopt(stream.sockets[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	for (int i = 0; i < N_FILES; i++)
		add_file(&stream, i);
	for (int i = 0; i < READ_TICKS; i++) {
		tick(&stream);
		read_all(&stream);
	}
	finish(&stream);
	for (size_t i = 0; i < stream.recording.modules.count; i++) {
		const struct module *module = stream.recording.modules.items[i];
		char text[32] = "";
		if (module->kind != MODULE_FILE)
			continue;
		assert_true(pread(module->fd, text, sizeof(text) - 1, 0) > 0);
		assert_string_equal(text, module->path);
		assert_int_equal(module->user.uid, module->inode);
		n_files++;
	}
	assert_int_equal(n_files, N_FILES);
	end(&stream);
}

enum { N_WINDOW_TICKS = 30000, N_PLACES = 4, MAX_TIDS = N_WINDOW_TICKS + N_THREADS, LIFE = 50 };

// What the reader is to know where a window ends.
struct ledger {
	struct stream stream;
	uint32_t counts[MAX_TIDS][N_PLACES]; // by thread and place, as counted
	uint32_t seen[MAX_TIDS][N_PLACES];
	uint32_t threads[N_THREADS]; // those that live
	int last_tid;
	uint64_t n_windows, n_forgotten;
};

static void check_window(void *context, const struct window_end *end)
{
	struct ledger *ledger = context;
	const struct profile *profile = &ledger->stream.recording.profile;

	assert_int_equal(end->at_ns, ledger->stream.now_ns - ledger->stream.profile.start_ns);
	assert_int_equal(end->n_late, 3);
	assert_string_equal(end->why, "why");
	memset(ledger->seen, 0, sizeof(ledger->seen));
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		const struct stack *stack = &profile->stacks[sample->stack];
		const uint32_t location = profile->location_ids[stack->first];
		ledger->seen[profile->threads[sample->thread].tid]
		            [profile->locations[location].address] += (uint32_t)sample->count;
	}
	assert_memory_equal(ledger->seen, ledger->counts, sizeof(ledger->seen));
	ledger->n_windows++;
}

static void note_forgotten(void *context)
{
	struct ledger *ledger = context;

	ledger->n_forgotten++;
}

static uint32_t bear(struct ledger *ledger)
{
	return profile_add_thread(&ledger->stream.profile, 1, ++ledger->last_tid, "thread",
	                          ledger->stream.now_ns);
}

// Threads stay where they are for some ticks; each lives for a while.
static void tick_ledger(struct ledger *ledger, int tick)
{
	struct stream *stream = &ledger->stream;
	struct profile *profile = &stream->profile;

	stream->now_ns += PERIOD_NS;
	for (uint32_t i = 0; i < N_THREADS; i++) {
		const uint32_t place = (i + (uint32_t)tick / (i + 1)) % N_PLACES;
		const uint32_t location = profile_intern_location(profile, 0, place);
		if ((tick + (int)i) % LIFE == 0) {
			profile_end_thread(profile, ledger->threads[i]);
			ledger->threads[i] = bear(ledger);
		}
		profile_count(profile, ledger->threads[i],
		              profile_intern_stack(profile, &location, 1, STACK_COMPLETE, 0),
		              THREAD_SLEEPING, WAIT_NONE, 1, stream->now_ns);
		ledger->counts[profile->threads[ledger->threads[i]].tid][place]++;
	}
	stream->stats.ticks++;
	stream->stats.last_ns = stream->now_ns;
	assert_true(record_writer_tick(stream->writer));
}

// However much the writer has forgotten, and whoever has got a number anew: the reader knows all
// that was counted where a window ends.
static void test_windows(void **state)
{
	struct ledger *ledger = memory_alloc_zeroed(1, sizeof(*ledger));
	struct stream *stream = &ledger->stream;

	(void)state;
	begin(stream);
	stream->recording.window_ended = check_window;
	stream->recording.may_collect = note_forgotten;
	stream->recording.context = ledger;
	ledger->last_tid = N_THREADS;
	for (uint32_t i = 0; i < N_THREADS; i++)
		ledger->threads[i] = i;
	for (int i = 1; i <= N_WINDOW_TICKS; i++) {
		tick_ledger(ledger, i);
		if (i % 997 == 0)
			assert_true(record_writer_end_window(
			    stream->writer,
			    &(struct window_end){.at_ns = stream->now_ns - stream->profile.start_ns,
			                         .n_late = 3,
			                         .why = "why"}));
		read_all(stream);
		record_writer_forget(stream->writer, N_STACKS);
		read_all(stream);
	}
	assert_int_equal(ledger->n_windows, N_WINDOW_TICKS / 997);
	assert_true(ledger->n_forgotten > 5);
	assert_true(stream->profile.n_threads < 2 * MAX_TIDS / 10);
	assert_true(stream->profile.n_samples <= 3 * 4096);
	finish(stream);
	end(stream);
	free(ledger);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_read),
	    cmocka_unit_test(test_stalled),
	    cmocka_unit_test(test_files),
	    cmocka_unit_test(test_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

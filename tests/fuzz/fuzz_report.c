// SPDX-License-Identifier: MIT
// Every writer on what is left of a damaged recording. The first byte of the input says in which
// ways it is written; the rest is the recording.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "long_waits.h"
#include "record_input.h"
#include "record_writer.h"
#include "run_stats.h"
#include "slice.h"
#include "timeline.h"
#include "writer.h"

enum { WAYS_ROOTS = 1, WAYS_LINES = 2, WAYS_SYSCALLS = 4, WAYS_SLICED = 8, WAYS_WAITS = 16 };
enum { MAX_TICKS = 10000 }; // for the writer that writes each, to keep it quick

static void discard(const struct writer *writer, const struct report *report)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	error_destroy(writer->write(report, stream));
	fclose(stream);
	free(text);
}

static uint64_t count_ticks(const struct timeline *timeline)
{
	uint64_t n = 0;

	for (size_t i = 0; i < timeline->n_spans; i++)
		n += timeline->spans[i].count;
	return n;
}

static void write_view(const struct recording *recording, const struct profile *view,
                       struct timeline *timeline, uint8_t ways)
{
	static const struct writer *const plain[] = {&writer_folded, &writer_pprof};
	static const struct writer *const timed[] = {&writer_speedscope, &writer_firefox,
	                                             &writer_chrome, &writer_sentry, &writer_html};
	const char *const comments[] = {recording->comment, NULL};
	struct report report = {
	    .profile = view,
	    .modules = &recording->modules,
	    .symbols = &recording->symbols,
	    .comments = comments,
	    .pid = recording->pid,
	    .process_roots = recording->children || ways & WAYS_ROOTS,
	    .thread_roots = ways & WAYS_ROOTS,
	    .lines = ways & WAYS_LINES,
	    .syscalls = ways & WAYS_SYSCALLS,
	};

	for (size_t i = 0; i < array_size(plain); i++)
		discard(plain[i], &report);
	report.profile = &recording->profile;
	report.timeline = timeline;
	for (size_t i = 0; i < array_size(timed); i++)
		if (timed[i] != &writer_sentry || count_ticks(timeline) <= MAX_TICKS)
			discard(timed[i], &report);
}

static void write_all(struct recording *recording, uint8_t ways)
{
	const struct record_options options = {.pid = recording->pid,
	                                       .fd = open("/dev/null", O_WRONLY | O_CLOEXEC)};
	struct profile *profile = &recording->profile;
	struct run_stats stats = {0};
	struct slice slice;
	struct timeline timeline;
	struct long_waits waits;
	size_t n_threads, n_left_out;

	slice_init(&slice, 1000000, 50000000);
	timeline_init(&timeline, INT64_MIN, INT64_MAX);
	long_waits_init(&waits, 1000000);
	profile_follow(profile, &slice.follower);
	profile_follow(profile, &timeline.follower);
	profile_follow(profile, &waits.follower);
	struct record_writer *again =
	    record_writer_create(&options, profile, &recording->modules, &stats);
	recording_replay(recording);
	struct profile view = ways & WAYS_SLICED ? slice_view(&slice, profile) : *profile;
	if (ways & WAYS_WAITS)
		view = long_waits_view(&waits, profile, 10, &n_threads, &n_left_out);
	write_view(recording, &view, &timeline, ways);
	record_writer_finish(again, recording->comment ?: "");
	record_writer_destroy(again);
	long_waits_deinit(&waits);
	timeline_deinit(&timeline);
	slice_deinit(&slice);
	close(options.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct recording recording;

	if (size == 0 || !record_input_open(data + 1, size - 1, &recording))
		return 0;
	write_all(&recording, data[0]);
	recording_deinit(&recording);
	return 0;
}

#include "report_command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "debug_sources.h"
#include "error.h"
#include "local_files.h"
#include "long_waits.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "publish.h"
#include "recording.h"
#include "slice.h"
#include "summary.h"
#include "timeline.h"
#include "writer.h"

static double seconds(int64_t ns)
{
	return (double)ns / (double)NS_PER_SECOND;
}

static uint64_t count_samples(const struct profile *profile)
{
	uint64_t n = 0;

	for (size_t i = 0; i < profile->n_samples; i++)
		n += profile->samples[i].count;
	return n;
}

// What of the recording is missing or in doubt.
static void print_damage(const struct recording *recording)
{
	if (recording->lost_bytes)
		fprintf(stderr,
		        "profiler: the recording is damaged or cut short: %" PRIu64
		        " bytes of it are in no whole block\n",
		        recording->lost_bytes);
	if (recording->lost_blocks || recording->bad_records || recording->lost_stacks)
		fprintf(stderr,
		        "profiler: %" PRIu64 " blocks are missing, %" PRIu64
		        " records cannot be read, the stacks of %" PRIu64 " samples are lost\n",
		        recording->lost_blocks, recording->bad_records, recording->lost_stacks);
	if (!recording->whole)
		fprintf(stderr,
		        "profiler: the recording has no end: the profiler was killed, or its disk "
		        "was full; %" PRIu64
		        " threads are taken to have stayed where they were seen last\n",
		        recording->open_threads);
	if (recording->full)
		fprintf(stderr,
		        "profiler: --max-size was reached: %" PRIu64 " later samples and %" PRIu64
		        " names were not recorded\n",
		        recording->dropped_samples, recording->dropped_names);
}

static void print_recording(const struct recording *recording, const struct profile *shown)
{
	const struct profile *whole = &recording->profile;

	fprintf(stderr,
	        "profiler: recording of %.3f s: %" PRIu64 " ticks, %" PRIu64 " missed; %" PRIu64
	        " samples of %zu threads; %zu distinct stacks\n",
	        seconds(whole->duration_ns), recording->ticks, recording->missed_ticks,
	        count_samples(whole), whole->n_threads, whole->n_stacks);
	if (shown->samples != whole->samples)
		fprintf(stderr, "profiler: slice of %.3f s: %" PRIu64 " samples\n",
		        seconds(shown->duration_ns), count_samples(shown));
	print_damage(recording);
}

static struct error *write_report(const struct options *options, struct recording *recording,
                                  const struct profile *profile, struct timeline *timeline,
                                  struct output *output)
{
	const char *const comments[] = {recording->comment, NULL};
	struct symbols found = {0};
	const struct symbols *symbols = &recording->symbols;

	if (!recording->has_symbols) {
		const struct symbolize_options names = {.inlines = options->inlines};
		local_files_find(&recording->modules);
		symbolize(&recording->profile, &recording->modules, &names, &found);
		symbols = &found;
	}
	struct error *error = publish(options,
	                              &(struct publication){
	                                  .profile = timeline ? &recording->profile : profile,
	                                  .timeline = timeline,
	                                  .modules = &recording->modules,
	                                  .symbols = symbols,
	                                  .comments = comments,
	                                  .pid = recording->pid,
	                                  .children = recording->children,
	                              },
	                              output_stream(output));
	if (!error)
		error = output_finish(output, NULL);
	if (!options->quiet)
		summary_print_unreadable(&recording->modules);
	if (!error && !options->quiet)
		summary_print_advice(profile, &recording->modules, symbols);
	if (!options->quiet && recording->modules.debug_sources->server)
		summary_print_fetched(recording->modules.debug_sources->server);
	symbols_deinit(&found);
	return error;
}

static struct error *report(const struct options *options, struct recording *recording,
                            struct output *output)
{
	struct profile view;
	struct slice slice = {0};
	const bool sliced = publish_is_sliced(options);
	struct timeline timeline = {0};
	struct long_waits waits = {0};
	const bool shows_time = publish_shows_time(options);
	struct error *error = NULL;

	slice_init(&slice, INT64_MIN, INT64_MAX);
	if (sliced) {
		error = publish_set_slice(options, &recording->profile, &slice);
		profile_follow(&recording->profile, &slice.follower);
	}
	if (shows_time) {
		timeline_init(&timeline, slice.from_ns, slice.to_ns);
		profile_follow(&recording->profile, &timeline.follower);
	}
	if (options->waits_ns) {
		long_waits_init(&waits, options->waits_ns);
		profile_follow(&recording->profile, &waits.follower);
	}
	if (!error) {
		recording_replay(recording);
		view = sliced ? slice_view(&slice, &recording->profile) : recording->profile;
		if (!options->quiet)
			print_recording(recording, &view);
	}
	if (!error && options->waits_ns)
		view = publish_waits(options, &waits, &recording->profile);
	if (!error && sliced)
		error = publish_check_slice(&view, &recording->profile);
	if (!error)
		error =
		    write_report(options, recording, &view, shows_time ? &timeline : NULL, output);
	long_waits_deinit(&waits);
	timeline_deinit(&timeline);
	slice_deinit(&slice);
	return error;
}

struct error *report_command(const struct options *options)
{
	struct debug_sources sources = {0};
	struct recording recording;
	struct output *output = NULL;
	struct error *error = recording_open(options->recording, &recording);

	if (error)
		return error;
	modules_set_debug_sources(&recording.modules, &sources);
	error = debug_sources_init(&sources, options->debug_directories, options->debuginfod,
	                           !options->quiet && isatty(STDERR_FILENO));
	unsetenv("DEBUGINFOD_URLS"); // else libdw may ask
	if (!error)
		error = output_open(options->output ?: "-", options->writer->binary, &output);
	if (!error)
		error = report(options, &recording, output);
	if (!error && !options->quiet)
		summary_print_output(options->writer, output_name(output));
	output_destroy(output);
	recording_deinit(&recording);
	debug_sources_deinit(&sources);
	return error;
}

// SPDX-License-Identifier: MIT
#include "window_run.h"

#include <stdlib.h>

#include "cpu_waits.h"
#include "error.h"
#include "memory.h"
#include "metrics.h"
#include "profile.h"
#include "recording.h"
#include "supervise.h"

bool window_run_is_asked(const struct options *options)
{
	return options->ring_ns || options->every_ns;
}

// The uploader comes first, while there is little in memory that it would share.
static struct error *open_pusher(struct window_run *run)
{
	struct options *options = &run->options;

	if (!options->output) {
		struct error *error = pusher_find_spool(options, &run->spool);
		if (error)
			return error;
		options->output = run->spool;
	}
	return NULL;
}

struct error *window_run_open(struct window_run *run, const struct options *options,
                              struct recording *recording, const struct run_stats *stats,
                              const struct supervise_writer *process)
{
	const bool pushes = options->push.destination.url != NULL;

	*run = (struct window_run){
	    .options = *options,
	    .recording = recording,
	    .stats = stats,
	    .process = process,
	};
	struct error *error = pushes ? open_pusher(run) : NULL;
	if (!error)
		error = window_files_init(&run->files, &run->options, &recording->modules,
		                          &process->ends);
	if (!error && pushes)
		error = pusher_start(&run->pusher, &run->options, &process->ends);
	return error;
}

void window_run_begin(struct window_run *run)
{
	const struct options *options = &run->options;
	struct recording *recording = run->recording;

	run->files.pid = recording->pid;
	pusher_name_target(&run->pusher, recording->pid, options->pid ? NULL : options->command[0]);
	run->files.labels = (const char *const *)run->pusher.labels;
	if (options->ring_ns)
		flight_recorder_begin(&run->recorder, options, &recording->profile, &run->files);
	else
		windows_begin(&run->windows, options, &recording->profile, &run->files);
}

static void write_metrics(struct window_run *run, bool ended)
{
	const struct recording *recording = run->recording;

	if (!run->options.metrics || run->metrics_error)
		return;
	run->metrics_error = metrics_write(
	    run->options.metrics, &(struct metrics){
	                              .pid = recording->pid,
	                              .sampler = run->process->worker,
	                              .ended = ended,
	                              .stats = run->stats,
	                              .profile = &recording->profile,
	                              .cpus = cpu_log_between(&recording->cpu_log, 0, INT64_MAX),
	                              .push = run->pusher.counts,
	                              .lost_windows = run->files.n_lost,
	                              .lost_samples = run->files.n_lost_samples,
	                          });
}

void window_run_end_window(struct window_run *run, const struct window_end *end)
{
	recording_follow_clock(run->recording);
	window_files_poll(&run->files, false);
	if (run->options.ring_ns)
		flight_recorder_write(&run->recorder, end);
	else if (windows_cut(&run->windows, end->at_ns))
		write_metrics(run, false);
}

void window_run_collect(struct window_run *run)
{
	if (run->options.ring_ns)
		ring_collect(&run->recorder.ring);
	else
		windows_collect(&run->windows);
}

void window_run_poll(struct window_run *run)
{
	window_files_poll(&run->files, false);
	pusher_poll(&run->pusher);
	if (run->options.ring_ns)
		flight_recorder_trim(&run->recorder, recording_now_ns(run->recording));
}

struct error *window_run_end(struct window_run *run)
{
	const struct options *options = &run->options;

	if (options->ring_ns)
		flight_recorder_end(&run->recorder);
	else
		windows_end(&run->windows, run->recording->profile.duration_ns);
	struct error *error = window_files_end(&run->files);
	pusher_end(&run->pusher);
	write_metrics(run, true);
	return error ? error : take_pointer(run->metrics_error);
}

void window_run_deinit(struct window_run *run)
{
	flight_recorder_deinit(&run->recorder);
	windows_deinit(&run->windows);
	window_files_deinit(&run->files);
	pusher_deinit(&run->pusher);
	free(run->spool);
	error_destroy(run->metrics_error);
}

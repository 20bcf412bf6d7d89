// SPDX-License-Identifier: MIT
#include "metrics.h"

#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "agent_cost.h"
#include "clock.h"
#include "error.h"
#include "histogram.h"
#include "json.h"
#include "memory.h"
#include "output.h"
#include "profile.h"
#include "push_counts.h"
#include "run_stats.h"
#include "text.h"
#include "time_point.h"

enum { MAX_NAME_BYTES = 256 };

static void put_percentiles(struct json *json, const char *key, const struct histogram *histogram)
{
	json_key(json, key);
	json_open(json, '{');
	json_key_int(json, "count", histogram->total);
	json_key_int(json, "median", histogram_percentile(histogram, 0.5));
	json_key_int(json, "p90", histogram_percentile(histogram, 0.9));
	json_key_int(json, "p99", histogram_percentile(histogram, 0.99));
	json_key_int(json, "max", histogram->max_ns);
	json_close(json, '}');
}

static void put_time(struct json *json, const char *key, int64_t time_ns)
{
	char text[TIME_POINT_TEXT_SIZE];

	time_point_format(time_ns, false, text);
	json_key(json, key);
	json_string(json, text);
}

static void put_ticks(struct json *json, const struct run_stats *stats,
                      const struct profile *profile)
{
	put_time(json, "start", profile->start_time_ns);
	put_time(json, "end", profile->start_time_ns + stats->last_ns - stats->start_ns);
	json_key_int(json, "duration_ns", stats->last_ns - stats->start_ns);
	json_key(json, "frequency_hz"); // exactly, to nine digits
	json_time(json, (int64_t)(stats->frequency_hz * (double)NS_PER_SECOND + 0.5),
	          NS_PER_SECOND);
	json_key_int(json, "seed", stats->seed);
	json_key_int(json, "ticks", stats->ticks);
	json_key_int(json, "missed_ticks", stats->missed_ticks);
	json_key_int(json, "thinned_ticks", stats->thinned_ticks);
	json_key_int(json, "samples", stats->samples);
	json_key_int(json, "stacks", profile->n_stacks);
	json_key_int(json, "locations", profile->n_locations);
}

static void put_hold(struct json *json, const struct run_stats *stats)
{
	json_key_int(json, "held_ns", stats->held_ns);
	json_key_int(json, "held_waiting_ns", stats->held_waiting_ns);
	json_key_int(json, "stops", stats->stops);
	json_key_int(json, "copies", stats->copies);
	json_key_int(json, "credits", stats->credits);
	json_key_int(json, "denied_stops", stats->denied);
	json_key_int(json, "unmended_calls", stats->calls.left);
	put_percentiles(json, "tick_hold_ns", &stats->tick_hold);
	put_percentiles(json, "thread_hold_ns", &stats->thread_hold);
}

// cpu_ns counts from minus the clock's reading while the sampler runs (sampler.c).
static void put_own(struct json *json, const struct metrics *metrics)
{
	const struct run_stats *stats = metrics->stats;
	struct rusage usage = {0};
	int64_t cpu_ns = stats->end_ns
	                     ? stats->cpu_ns
	                     : stats->cpu_ns + clock_read_ns(clock_of_process(metrics->sampler));

	if (metrics->sampler != getpid()) // then this is the writer
		cpu_ns += clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	getrusage(RUSAGE_SELF, &usage);
	json_key_int(json, "profiler_cpu_ns", cpu_ns);
	json_key_int(json, "profiler_peak_memory_bytes", (uint64_t)usage.ru_maxrss * 1024);
}

static void put_truncated(struct json *json, const struct profile *profile)
{
	uint64_t by_end[N_STACK_ENDS];

	memcpy(by_end, profile->forgotten.by_end, sizeof(by_end));
	for (size_t i = 0; i < profile->n_samples; i++)
		if (profile->samples[i].count > 0)
			by_end[profile->stacks[profile->samples[i].stack].end] +=
			    profile->samples[i].count;
	json_key(json, "truncated");
	json_open(json, '{');
	for (int end = 0; end < N_STACK_ENDS; end++)
		if (end != STACK_COMPLETE && by_end[end] > 0)
			json_key_int(json, stack_end_name((enum stack_end)end), by_end[end]);
	json_close(json, '}');
}

static void put_kernel_figure(struct json *json, const char *key, int64_t ns)
{
	json_key(json, key);
	if (ns >= 0)
		json_int(json, ns);
	else
		json_null(json); // the kernel does not tell
}

static void put_thread(struct json *json, const struct thread *thread)
{
	json_open(json, '{');
	json_key_int(json, "pid", thread->pid);
	json_key_int(json, "tid", thread->tid);
	_cleanup_free_ char *name = text_clean(thread->name, strlen(thread->name), MAX_NAME_BYTES);
	json_key_string(json, "name", name);
	json_key_bool(json, "alive", !thread->ended);
	json_key_int(json, "watched_ns", thread->last_ns - thread->first_ns - thread->away_ns);
	put_kernel_figure(json, "cpu_ns", thread->kernel_cpu_ns);
	put_kernel_figure(json, "run_queue_ns", thread->kernel_delay_ns);
	json_close(json, '}');
}

// Those that have been forgotten are in the sums.
static void put_target(struct json *json, const struct profile *profile)
{
	struct profile_totals sums = profile->forgotten;

	json_key(json, "threads");
	json_open(json, '[');
	for (size_t i = 0; i < profile->n_threads; i++) {
		const struct thread *thread = &profile->threads[i];
		if (thread->forgotten)
			continue;
		put_thread(json, thread);
		sums.threads++;
		sums.kernel_cpu_ns += thread->kernel_cpu_ns > 0 ? thread->kernel_cpu_ns : 0;
		sums.kernel_delay_ns += thread->kernel_delay_ns > 0 ? thread->kernel_delay_ns : 0;
	}
	json_close(json, ']');
	json_key_int(json, "threads_seen", sums.threads);
	json_key_int(json, "target_cpu_ns", sums.kernel_cpu_ns);
	json_key_int(json, "target_run_queue_ns", sums.kernel_delay_ns);
}

// What the process's control group allows it.
static void put_cpus(struct json *json, const struct cpu_waits *figures)
{
	json_key_int(json, "target_cpus", figures->n_cpus);
	json_key(json, "target_cpu_limit");
	if (figures->limit)
		json_time(json, figures->limit, 1000);
	else
		json_null(json);
	json_key_int(json, "target_limit_periods", (int64_t)figures->n_periods);
	json_key_int(json, "target_throttled_periods", (int64_t)figures->n_throttled);
	json_key_int(json, "target_throttled_ns", figures->throttled_ns);
}

static void put_moment(struct json *json, const char *key, int64_t time_ns)
{
	if (time_ns) {
		put_time(json, key, time_ns);
		return;
	}
	json_key(json, key);
	json_null(json);
}

// Samples that are sent, dropped or in waiting windows are all that were written.
static void put_push(struct json *json, const struct push_counts *push)
{
	json_key_open(json, "push", '{');
	json_key_int(json, "sent_windows", (int64_t)push->sent_windows);
	json_key_int(json, "sent_samples", (int64_t)push->sent_samples);
	json_key_int(json, "dropped_windows", (int64_t)push->dropped_windows);
	json_key_open(json, "dropped_samples", '{');
	for (enum push_drop drop = 0; drop < N_PUSH_DROPS; drop++)
		json_key_int(json, push_drop_name(drop), (int64_t)push->dropped_samples[drop]);
	json_close(json, '}');
	json_key_int(json, "maybe_twice_samples", (int64_t)push->maybe_twice_samples);
	json_key_int(json, "requests", (int64_t)push->requests);
	json_key_int(json, "retries", (int64_t)push->retries);
	json_key_int(json, "waiting_windows", (int64_t)push->spool_windows);
	json_key_int(json, "waiting_bytes", (int64_t)push->spool_bytes);
	put_moment(json, "oldest_waiting", push->oldest_ns);
	put_moment(json, "last_success", push->last_success_ns);
	json_close(json, '}');
}

// Replaces the file by an object with what `put` writes behind the version.
static struct error *
write_object(const char *path, void (*put)(struct json *json, const void *what), const void *what)
{
	struct output *output = NULL;
	struct error *error = output_open(path, false, &output);

	if (error)
		return error;
	struct json json = {.stream = output_stream(output)};
	json_open(&json, '{');
	json_key_int(&json, "version", METRICS_VERSION);
	put(&json, what);
	json_close(&json, '}');
	fputc('\n', json.stream);
	return output_end(output, NULL);
}

static void put_metrics(struct json *json, const void *what)
{
	const struct metrics *metrics = what;

	json_key_int(json, "pid", metrics->pid);
	json_key_bool(json, "ended", metrics->ended);
	put_ticks(json, metrics->stats, metrics->profile);
	put_hold(json, metrics->stats);
	put_own(json, metrics);
	put_truncated(json, metrics->profile);
	put_target(json, metrics->profile);
	put_cpus(json, &metrics->cpus);
	json_key_int(json, "lost_windows", metrics->lost_windows);
	json_key_int(json, "lost_samples", metrics->lost_samples);
	if (metrics->push)
		put_push(json, metrics->push);
}

struct error *metrics_write(const char *path, const struct metrics *metrics)
{
	return write_object(path, put_metrics, metrics);
}

static void put_windows(struct json *json, const struct agent_metrics *metrics)
{
	const struct agent_counts *counts = metrics->counts;

	json_key_int(json, "processes", (int64_t)metrics->n_processes);
	json_key_int(json, "chosen_processes", (int64_t)metrics->n_chosen);
	json_key_int(json, "sampled_processes", (int64_t)metrics->n_running);
	json_key_int(json, "windows", (int64_t)counts->windows);
	json_key_int(json, "failed_windows", (int64_t)counts->failed);
	json_key_int(json, "over_limit_windows", (int64_t)counts->over_limit);
	json_key_int(json, "killed_windows", (int64_t)counts->killed);
	json_key_int(json, "left_out_windows", (int64_t)counts->left_out);
	json_key_int(json, "lost_windows", (int64_t)counts->lost_windows);
	json_key_int(json, "denied", (int64_t)counts->denied);
	json_key_int(json, "silent", (int64_t)counts->silent);
}

static void put_sums(struct json *json, const struct agent_counts *counts)
{
	json_key_int(json, "ticks", (int64_t)counts->ticks);
	json_key_int(json, "missed_ticks", (int64_t)counts->missed_ticks);
	json_key_int(json, "samples", (int64_t)counts->samples);
	json_key_int(json, "lost_samples", (int64_t)counts->lost_samples);
	json_key_int(json, "unmended_calls", (int64_t)counts->unmended_calls);
}

static void put_cost(struct json *json, const struct agent_cost *cost)
{
	json_key_int(json, "profiler_cpu_ns", cost->total_cpu_ns);
	json_key_int(json, "uploader_cpu_ns", cost->uploader_cpu_ns);
	json_key_int(json, "memory_bytes", (int64_t)cost->memory);
	json_key_int(json, "peak_memory_bytes", (int64_t)cost->peak_memory);
}

static void put_agent(struct json *json, const void *what)
{
	const struct agent_metrics *metrics = what;

	put_time(json, "start", metrics->start_ns);
	put_time(json, "now", clock_read_ns(CLOCK_REALTIME));
	json_key_bool(json, "ended", metrics->ended);
	json_key_bool(json, "off", metrics->is_off);
	put_windows(json, metrics);
	put_sums(json, metrics->counts);
	put_cost(json, metrics->cost);
	if (metrics->push)
		put_push(json, metrics->push);
}

struct error *agent_metrics_write(const char *path, const struct agent_metrics *metrics)
{
	return write_object(path, put_agent, metrics);
}

// SPDX-License-Identifier: MIT
#include "agent_metrics.h"

#include "agent_cost.h"
#include "clock.h"
#include "json.h"
#include "metrics.h"

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

static void put_metrics(struct json *json, const void *what)
{
	const struct agent_metrics *metrics = what;

	metrics_put_time(json, "start", metrics->start_ns);
	metrics_put_time(json, "now", clock_read_ns(CLOCK_REALTIME));
	json_key_bool(json, "ended", metrics->ended);
	json_key_bool(json, "off", metrics->is_off);
	put_windows(json, metrics);
	put_sums(json, metrics->counts);
	put_cost(json, metrics->cost);
	if (metrics->push)
		metrics_put_push(json, metrics->push);
}

struct error *agent_metrics_write(const char *path, const struct agent_metrics *metrics)
{
	return metrics_write_object(path, put_metrics, metrics);
}

// SPDX-License-Identifier: MIT
#include "top_json.h"

#include <stdlib.h>
#include <string.h>

#include "frame_name.h"
#include "json.h"
#include "memory.h"
#include "recording.h"
#include "top_model.h"
#include "top_own.h"

enum { TOP_JSON_VERSION = 2 }; // 1 called samples ticks

// Takes the text over.
static void key_own(struct json *json, const char *key, char *text)
{
	json_key_string(json, key, text);
	free(text);
}

static void write_kinds(struct json *json, const uint64_t kinds[N_WAIT_KINDS])
{
	json_key_open(json, "kinds", '{');
	for (int i = 0; i < N_WAIT_KINDS; i++)
		if (kinds[i] > 0)
			json_key_int(json, wait_kind_name((enum wait_kind)i), (int64_t)kinds[i]);
	json_close(json, '}');
}

// What the kernel counted, as near to the window as it was read.
static void write_cpus(struct json *json, const struct top_model *model)
{
	const struct cpu_waits *figures = &model->cpus;

	if (figures->at_ns == 0)
		return;
	json_key_open(json, "cpu", '{');
	json_key_int(json, "over_ns", figures->at_ns);
	json_key_int(json, "used_ns", figures->cpu_ns);
	json_key_int(json, "waited_ns", figures->delay_ns);
	json_key_int(json, "cpus", figures->n_cpus);
	json_key_int(json, "periods", (int64_t)figures->n_periods);
	json_key_int(json, "throttled_periods", (int64_t)figures->n_throttled);
	json_key_int(json, "throttled_ns", figures->throttled_ns);
	json_close(json, '}');
}

static void write_stack(struct json *json, const struct top_model *model, uint32_t sample)
{
	size_t n;
	char **names = top_stack(model, sample, TOP_STACK_FULL_NAMES, &n);

	json_key_open(json, "stack", '[');
	for (size_t i = 0; i < n; i++) {
		json_string(json, names[i]);
		free(names[i]);
	}
	free(names);
	json_close(json, ']');
}

static void write_thread(struct json *json, const struct top_model *model,
                         const struct top_thread *thread)
{
	const struct profile *profile = model->input.profile;
	const struct thread *known = &profile->threads[thread->thread];

	json_open(json, '{');
	json_key_clean(json, "name", frame_name_thread(known));
	json_key_int(json, "pid", known->pid);
	json_key_int(json, "tid", known->tid);
	json_key_int(json, "samples", (int64_t)thread->share.count);
	write_kinds(json, thread->share.kinds);
	json_key_bool(json, "ended", thread->ended);
	json_key_bool(json, "never_woke", thread->never_woke);
	if (thread->sample != TOP_NONE) {
		const uint32_t wait = profile->samples[thread->sample].wait;
		json_key_string(json, "now", wait_kind_name(thread->now));
		json_key_int(json, "for_ns", thread->for_ns);
		key_own(json, "waits_for", top_waits_for(model, wait));
		json_labels_write(json, profile, profile->samples[thread->sample].labels);
		write_stack(json, model, thread->sample);
	}
	json_close(json, '}');
}

static void write_functions(struct json *json, const struct top_model *model)
{
	json_key_open(json, "functions", '[');
	for (size_t i = 0; i < model->n_functions; i++) {
		const struct top_function *function = &model->functions[i];
		json_open(json, '{');
		key_own(json, "name", top_function_full_name(model, function->id));
		json_key_int(json, "self", (int64_t)function->self);
		json_key_int(json, "own_self", (int64_t)function->own_self);
		json_key_bool(json, "own", top_is_own(&model->input, function->id));
		json_key_int(json, "total", (int64_t)function->total.count);
		write_kinds(json, function->total.kinds);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void write_waits(struct json *json, const struct top_model *model)
{
	json_key_open(json, "waits", '[');
	for (size_t i = 0; i < model->n_waits; i++) {
		const struct top_wait *wait = &model->waits[i];
		json_open(json, '{');
		json_key_string(json, "kind", wait_kind_name(wait->kind));
		key_own(json, "for", top_wait_thing(model, wait));
		key_own(json, "holder", top_wait_holder(model, wait));
		json_key_int(json, "samples", (int64_t)wait->count);
		json_key_int(json, "threads", (int64_t)wait->n_threads);
		json_key_int(json, "longest_ns", wait->longest_ns);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void top_json_write(const struct top_model *model, const struct recording *recording, FILE *stream)
{
	struct json json = {.stream = stream};
	const struct top_input *input = &model->input;

	json_open(&json, '{');
	json_key_int(&json, "version", TOP_JSON_VERSION);
	json_key_int(&json, "pid", recording->pid);
	json_key_int(&json, "start_ns", recording->profile.start_time_ns); // since 1970
	json_key_int(&json, "from_ns", input->from_ns);
	json_key_int(&json, "to_ns", input->to_ns);
	json_key_int(&json, "samples", (int64_t)model->share.count);
	write_kinds(&json, model->share.kinds);
	write_cpus(&json, model);
	json_key_int(&json, "missed_ticks", (int64_t)recording->missed_ticks);
	json_key_int(&json, "dropped", (int64_t)recording->dropped_samples);
	json_key_open(&json, "threads", '[');
	for (size_t i = 0; i < model->n_threads; i++)
		write_thread(&json, model, &model->threads[i]);
	json_close(&json, ']');
	write_functions(&json, model);
	write_waits(&json, model);
	json_close(&json, '}');
	fputc('\n', stream);
}

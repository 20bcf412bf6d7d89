// SPDX-License-Identifier: MIT
// Chrome's trace format (Trace Event Format, "JSON Object Format"), which chrome://tracing,
// Perfetto's viewer and speedscope read. Each call that was seen to last is a complete event ("X");
// their times say which is nested in which.
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "frame_name.h"
#include "frame_table.h"
#include "json.h"
#include "labels.h"
#include "memory.h"
#include "timeline.h"
#include "writer.h"

struct call {
	uint32_t function; // of the frame table
	int64_t start_ns;
};

struct chrome {
	struct json json;
	struct frame_table table;
	const struct profile *profile;
	struct call *calls; // not yet ended, root first
	size_t n_calls, calls_capacity;
	uint32_t open_sample; // the sample of the leaf
};

static void put_time(struct chrome *chrome, const char *key, int64_t ns)
{
	json_key(&chrome->json, key);
	json_time(&chrome->json, ns, NS_PER_US);
}

static void put_ids(struct chrome *chrome, const struct thread *thread)
{
	json_key_int(&chrome->json, "pid", thread->pid);
	json_key_int(&chrome->json, "tid", thread->tid);
}

static void put_name(struct chrome *chrome, const struct thread *thread, const char *what,
                     const char *name)
{
	struct json *json = &chrome->json;

	json_open(json, '{');
	json_key_string(json, "ph", "M");
	json_key_string(json, "name", what);
	put_ids(chrome, thread);
	json_key_open(json, "args", '{');
	json_key_clean(json, "name", name);
	json_close(json, '}');
	json_close(json, '}');
}

// Writes what the thread waited in: the system call, or for a task why and for what.
static void put_wait(struct chrome *chrome, const struct wait *wait)
{
	const char *descriptor = frame_name_descriptor(wait);
	_cleanup_free_ char *what = frame_name_waits_in(wait);

	if (what)
		json_key_string(&chrome->json, wait->syscall == NO_SYSCALL ? "wait" : "syscall",
		                what);
	if (descriptor[0])
		json_key_clean(&chrome->json, "descriptor", descriptor);
}

// Writes what the thread did while the leaf lasted.
static void put_state(struct chrome *chrome)
{
	const struct profile *profile = chrome->profile;
	const struct sample *sample = &profile->samples[chrome->open_sample];
	struct json *json = &chrome->json;

	json_key_string(json, "cat", thread_state_name(sample->state));
	json_key_open(json, "args", '{');
	json_key_string(json, "state", thread_state_name(sample->state));
	if (sample->wait != WAIT_NONE) // else there may be no table of waits
		put_wait(chrome, &profile->waits[sample->wait]);
	if (sample->labels != LABELS_NONE)
		json_labels_write(json, profile, sample->labels);
	json_close(json, '}');
}

// Ends the innermost open call.
static void end_call(struct chrome *chrome, const struct thread *thread, int64_t end_ns, bool leaf)
{
	const struct call *call = &chrome->calls[--chrome->n_calls];
	const struct frame_function *function = &chrome->table.functions[call->function];
	struct json *json = &chrome->json;

	json_open(json, '{');
	json_key_string(json, "ph", "X");
	json_key_string(json, "name", frame_table_string(&chrome->table, function->name));
	put_ids(chrome, thread);
	put_time(chrome, "ts", call->start_ns - chrome->profile->start_ns);
	put_time(chrome, "dur", end_ns - call->start_ns);
	if (leaf)
		put_state(chrome);
	json_close(json, '}');
}

// Ends all calls from `depth` on, the leaf first.
static void end_calls(struct chrome *chrome, const struct thread *thread, int64_t end_ns,
                      size_t depth)
{
	bool leaf = true;

	while (chrome->n_calls > depth) {
		end_call(chrome, thread, end_ns, leaf);
		leaf = false;
	}
}

static void put_span(struct chrome *chrome, const struct thread *thread, const struct span *span)
{
	const struct sample *sample = &chrome->profile->samples[span->sample];
	size_t n, common = 0;
	const uint32_t *frames = frame_table_stack(&chrome->table, sample, &n);
	const struct frame *frame = chrome->table.frames;

	while (common < n && common < chrome->n_calls &&
	       chrome->calls[common].function == frame[frames[common]].function)
		common++;
	// The leaf shows the state, so another sample begins another leaf: also where a call
	// returned into it.
	if (common > 0 && (common == chrome->n_calls || common == n))
		common--;
	end_calls(chrome, thread, span->start_ns, common);
	for (size_t i = common; i < n; i++)
		*array_push(chrome->calls, chrome->n_calls, chrome->calls_capacity) =
		    (struct call){frame[frames[i]].function, span->start_ns};
	chrome->open_sample = span->sample;
}

static void put_thread(struct chrome *chrome, const struct thread_spans *spans)
{
	const struct thread *thread = &chrome->profile->threads[spans->thread];
	int64_t end_ns = spans->spans[0].start_ns;

	_cleanup_free_ char *name = frame_name_track(chrome->profile, spans);
	put_name(chrome, thread, "thread_name", name);
	put_name(chrome, thread, "process_name", profile_process_of(chrome->profile, thread));
	for (size_t i = 0; i < spans->count; i++) {
		const struct span *span = &spans->spans[i];
		if (span->start_ns > end_ns)
			end_calls(chrome, thread, end_ns, 0);
		put_span(chrome, thread, span);
		end_ns = span->end_ns;
	}
	end_calls(chrome, thread, end_ns, 0);
}

static struct error *write_chrome(const struct report *report, FILE *stream)
{
	struct chrome chrome = {.json = {.stream = stream}, .profile = report->profile};
	size_t n_threads;
	_cleanup_free_ struct thread_spans *threads =
	    timeline_by_thread(report->timeline, &n_threads);

	frame_table_init(&chrome.table, report);
	json_open(&chrome.json, '{');
	json_key_string(&chrome.json, "displayTimeUnit", "ms");
	json_key_open(&chrome.json, "traceEvents", '[');
	for (size_t i = 0; i < n_threads; i++)
		put_thread(&chrome, &threads[i]);
	json_close(&chrome.json, ']');
	json_close(&chrome.json, '}');
	putc('\n', stream);
	frame_table_deinit(&chrome.table);
	free(chrome.calls);
	return NULL;
}

const struct writer writer_chrome = {
    .name = "chrome",
    .suffixes = (const char *const[]){".trace.json", NULL},
    .default_suffix = ".trace.json",
    .next_command = "speedscope %s",
    .shows_time = true,
    .write = write_chrome,
};

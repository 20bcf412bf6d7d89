// SPDX-License-Identifier: MIT
#include "dump_past.h"

#include <stdlib.h>
#include <string.h>

#include "call_text.h"
#include "clock.h"
#include "error.h"
#include "frame_name.h"
#include "memory.h"
#include "time_point.h"
#include "options.h"
#include "summary.h"
#include "text.h"

enum { MAX_NAME_BYTES = 64 };

// Keeps the span of each thread that holds the moment.
struct watch {
	struct span_follower follower; // first: it is told
	int64_t at_ns;                 // since the start
	struct span *spans;
	size_t n_spans, capacity;
};

static void keep(struct span_follower *follower, const struct profile *profile, uint32_t thread,
                 const struct span *ended)
{
	struct watch *watch = (struct watch *)follower;

	(void)profile;
	(void)thread;
	if (ended->count > 0 && ended->start_ns <= watch->at_ns && watch->at_ns < ended->end_ns)
		*array_push(watch->spans, watch->n_spans, watch->capacity) = *ended;
}

// Who holds a lock stands by itself, as in a live dump: threads that wait for others are not alike.
static void add_call(struct dump_thread *thread, const struct wait *wait)
{
	const char *text = frame_name_descriptor(wait);
	_cleanup_free_ char *descriptor = text_clean(text, strlen(text), TEXT_UNLIMITED);
	char *holder = strstr(descriptor, WAIT_HOLDER);

	if (holder) {
		*holder = '\0';
		thread->holder =
		    memory_printf("%s held by %s", descriptor, holder + strlen(WAIT_HOLDER));
		*descriptor = '\0';
	}
	thread->call = call_text_name(wait->syscall, descriptor);
}

static void add_thread(struct dump *dump, const struct span *span, int64_t at_ns)
{
	const struct profile *profile = dump->profile;
	const struct sample *sample = &profile->samples[span->sample];
	const struct wait *wait = &profile->waits[sample->wait];
	struct dump_thread *thread = dump_add(dump, span->sample);

	if (sample->wait != WAIT_NONE && wait->syscall != NO_SYSCALL)
		add_call(thread, wait);
	if (!thread_state_is_blocked(sample->state))
		return;
	thread->blocked_ns = at_ns - span->start_ns;
	// Within a tick. One that slept when it was seen first may have done so for long.
	thread->is_exact = span->start_ns > profile->threads[span->thread].first_ns;
}

static bool is_shown(const struct options *options, const struct profile *profile,
                     const struct span *span)
{
	const struct thread *thread = &profile->threads[span->thread];

	if (!selection_has_labels(options->label_filters, options->n_label_filters, profile,
	                          profile->samples[span->sample].labels))
		return false;
	return !options->has_regex[SELECTION_THREAD] ||
	       regexec(&options->regexes[SELECTION_THREAD], thread->name, 0, NULL, 0) == 0;
}

void dump_past_fill(struct dump *dump, const struct recording *recording, const struct span *spans,
                    size_t n, int64_t at_ns)
{
	const char *name = profile_process_name(&recording->profile, recording->pid);

	dump->pid = recording->pid;
	dump->command = text_clean(name, strlen(name), MAX_NAME_BYTES);
	dump->host = memory_strdup(recording->host ?: "?");
	dump->time_ns = recording->profile.start_time_ns + at_ns;
	dump->up_ns = -1;
	for (size_t i = 0; i < n; i++)
		add_thread(dump, &spans[i], at_ns);
}

static void leave_out_threads(const struct options *options, struct watch *watch,
                              const struct profile *profile)
{
	size_t kept = 0;

	for (size_t i = 0; i < watch->n_spans; i++)
		if (is_shown(options, profile, &watch->spans[i]))
			watch->spans[kept++] = watch->spans[i];
	watch->n_spans = kept;
}

static struct error *no_such_time(const struct profile *profile, int64_t at_ns)
{
	char start[TIME_POINT_TEXT_SIZE];

	time_point_format(profile->start_time_ns, false, start);
	return error_create(EXIT_STATUS_USAGE,
	                    "--at lies %.3f s after the start, and nothing was sampled then: the "
	                    "recording began at %s and lasted %.3f s",
	                    clock_seconds(at_ns), start, clock_seconds(profile->duration_ns));
}

struct error *dump_past_take(const struct options *options, const struct debug_sources *sources,
                             struct dump_past *ret)
{
	const struct symbolize_options names = {.inlines = options->inlines};
	struct watch watch = {.follower.changed = keep};
	struct profile *profile = &ret->recording.profile;

	*ret = (struct dump_past){0};
	struct error *error = recording_open(options->recording, &ret->recording);
	if (error)
		return error;
	modules_set_debug_sources(&ret->recording.modules, sources);
	ret->dump.profile = profile;
	ret->dump.modules = &ret->recording.modules;
	ret->dump.symbols = &ret->recording.symbols;
	watch.at_ns = time_point_offset_ns(&options->dump.at, profile->start_time_ns);
	profile_follow(profile, &watch.follower);
	recording_replay(&ret->recording);
	if (!options->quiet)
		summary_print_damage(&ret->recording);
	const bool has_any = watch.n_spans > 0;
	leave_out_threads(options, &watch, profile);
	dump_past_fill(&ret->dump, &ret->recording, watch.spans, watch.n_spans, watch.at_ns);
	if (!has_any) {
		error = no_such_time(profile, watch.at_ns);
	} else {
		recording_find_names(&ret->recording, NULL, &names);
		dump_find_kinds(&ret->dump);
		dump_sort(&ret->dump);
	}
	free(watch.spans);
	profile->followers = NULL; // it ends here
	return error;
}

void dump_past_deinit(struct dump_past *past)
{
	dump_deinit(&past->dump);
	recording_deinit(&past->recording);
}

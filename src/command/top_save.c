// SPDX-License-Identifier: MIT
#include "top_save.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "dump_past.h"
#include "dump_text.h"
#include "error.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "write_report.h"
#include "screen.h"
#include "slice.h"
#include "text.h"
#include "top_source.h"
#include "writer.h"

enum { MAX_SAID_BYTES = 500, TIME_BYTES = 32 };

#define NAMES_NS (20 * NS_PER_SECOND)

static char *file_name(const struct top_source *source, const struct top_save_part *part)
{
	const char *suffix = part->what == 'd' ? "txt" : part->what == 'S' ? "html" : "pb.gz";
	const int64_t ns = source->recording.profile.start_time_ns + part->to_ns;
	const time_t seconds = (time_t)(ns / NS_PER_SECOND);
	char time[TIME_BYTES];
	struct tm when;

	gmtime_r(&seconds, &when);
	strftime(time, sizeof(time), "%Y%m%dT%H%M%SZ", &when);
	return memory_printf("profiler.%d.%s.%s", source->recording.pid, time, suffix);
}

// What all threads do at the end of the part.
static void write_dump(struct top_source *source, const struct top_save_part *part, FILE *stream)
{
	struct recording *recording = &source->recording;
	struct dump dump = {
	    .profile = &recording->profile,
	    .modules = &recording->modules,
	    .symbols = &recording->symbols,
	};
	struct span *spans = NULL;
	size_t n = 0, capacity = 0;
	struct top_model model;

	top_source_look(source, part->from_ns, part->to_ns, &(struct top_choice){0}, &model);
	for (size_t i = 0; i < model.n_threads; i++) {
		const struct top_thread *thread = &model.threads[i];
		if (thread->sample == TOP_NONE || thread->ended)
			continue;
		*array_push(spans, n, capacity) = (struct span){
		    .thread = thread->thread,
		    .sample = thread->sample,
		    .count = 1,
		    .start_ns = part->to_ns - thread->for_ns,
		    .end_ns = part->to_ns,
		};
	}
	dump_past_fill(&dump, recording, spans, n, part->to_ns);
	dump_find_kinds(&dump);
	dump_sort(&dump);
	dump_text_write(&dump, &(struct dump_text_options){0}, stream);
	dump_deinit(&dump);
	top_model_deinit(&model);
	free(spans);
}

static struct error *write_profile(const struct options *asked, struct top_source *source,
                                   const struct top_save_part *part, FILE *stream)
{
	struct profile *profile = &source->recording.profile;
	struct options options = *asked;
	struct timeline timeline;
	struct slice slice;

	options.writer = part->what == 'S' ? &writer_html : &writer_pprof;
	options.quiet = true;
	top_source_end(source); // the copy: all spans are there
	timeline_init(&timeline, part->from_ns, part->to_ns);
	slice_init(&slice, part->from_ns, part->to_ns);
	for (size_t i = 0; i < source->timeline.n_spans; i++) {
		timeline_add(&timeline, &source->timeline.spans[i]);
		slice_add(&slice, profile, &source->timeline.spans[i]);
	}
	const struct profile view = slice_view(&slice, profile);
	const struct cpu_waits cpus =
	    cpu_log_between(&source->recording.cpu_log, part->from_ns, part->to_ns);
	bool by_others;
	_cleanup_free_ char *cpu_wait =
	    cpu_waits_text(&cpus, cpu_waits_count_threads(&view), &by_others);
	struct error *error = write_report(&options,
	                                   &(struct report_source){
	                                       .part = &view,
	                                       .whole = profile,
	                                       .timeline = part->what == 'S' ? &timeline : NULL,
	                                       .modules = &source->recording.modules,
	                                       .symbols = &source->recording.symbols,
	                                       .comments = (const char *const[]){NULL},
	                                       .cpu_wait = cpu_wait,
	                                       .cpu_by_others = by_others,
	                                       .pid = source->recording.pid,
	                                       .children = source->recording.children,
	                                   },
	                                   stream);
	timeline_deinit(&timeline);
	slice_deinit(&slice);
	return error;
}

static struct error *write_file(const struct options *options, struct top_source *source,
                                const struct top_save_part *part, const char *name)
{
	struct output *output;
	struct error *error = output_open(name, part->what != 'd', &output);

	if (error)
		return error;
	if (source->is_stream)
		top_source_find_names(source, NAMES_NS);
	if (part->what == 'd')
		write_dump(source, part, output_stream(output));
	else
		error = write_profile(options, source, part, output_stream(output));
	return output_end(output, error);
}

// In the process that writes. Never returns.
static void run(const struct options *options, struct top_source *source,
                const struct top_save_part *part, int said)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
	_cleanup_free_ char *name = file_name(source, part);

	screen_forget();
	for (size_t i = 0; i < array_size(signals); i++)
		signal(signals[i], SIG_DFL);
	struct error *error = write_file(options, source, part, name);
	dprintf(said, "%s%s", error ? "" : "written: ", error ? error_message(error) : name);
	_exit(error ? error_status(error) : EXIT_STATUS_OK);
}

void top_save_start(struct top_save *save, const struct options *options, struct top_source *source,
                    const struct top_save_part *part)
{
	int fds[2];

	if (save->pid || pipe2(fds, O_CLOEXEC) != 0)
		return;
	save->pid = fork();
	if (save->pid == 0)
		run(options, source, part, fds[1]);
	close(fds[1]);
	save->fd = fds[0];
	if (save->pid < 0) {
		close(save->fd);
		*save = (struct top_save){.fd = -1};
	}
}

char *top_save_finish(struct top_save *save)
{
	char text[MAX_SAID_BYTES];
	const ssize_t n = read(save->fd, text, sizeof(text));
	int status = 0;

	close(save->fd);
	while (waitpid(save->pid, &status, 0) < 0 && errno == EINTR)
		;
	*save = (struct top_save){.fd = -1};
	return n > 0 ? text_clean(text, (size_t)n, MAX_SAID_BYTES)
	             : memory_printf("could not be written: ended with status %#x",
	                             (unsigned int)status);
}

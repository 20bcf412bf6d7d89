#include "publish.h"

#include "clock.h"
#include "error.h"
#include "long_waits.h"
#include "memory.h"
#include "moment.h"
#include "options.h"
#include "profile.h"
#include "selection.h"
#include "slice.h"
#include "summary.h"
#include "timeline.h"
#include "writer.h"

struct error *publish(const struct options *options, const struct publication *publication,
                      FILE *stream)
{
	const struct selection selection = options_selection(options);
	_cleanup_free_ bool *selected =
	    selection_apply(&selection, publication->profile, publication->modules,
	                    publication->symbols, options->syscalls);
	if (publication->timeline && selected)
		timeline_select(publication->timeline, selected);
	const struct report report = {
	    .timeline = publication->timeline,
	    .profile = publication->profile,
	    .modules = publication->modules,
	    .symbols = publication->symbols,
	    .selected = selected,
	    .comments = publication->comments,
	    .pid = publication->pid,
	    .process_roots = publication->children,
	    .thread_roots = options->threads,
	    .lines = options->lines,
	    .syscalls = options->syscalls,
	};
	struct error *error = options->writer->write(&report, stream);
	if (!error && !options->quiet)
		summary_print_selection(publication->profile, selected);
	return error;
}

bool publish_shows_time(const struct options *options)
{
	return options->writer->shows_time;
}

bool publish_is_sliced(const struct options *options)
{
	return options->from.kind != MOMENT_NONE || options->to.kind != MOMENT_NONE;
}

struct profile publish_waits(const struct options *options, struct long_waits *waits,
                             const struct profile *profile)
{
	size_t n_threads, n_left_out;
	const struct profile view = long_waits_view(
	    waits, profile, options->max_threads ?: OPTIONS_MAX_THREADS, &n_threads, &n_left_out);

	if (!options->quiet)
		summary_print_waits(options->waits_ns, view.n_samples, n_threads, n_left_out);
	return view;
}

static double seconds(int64_t ns)
{
	return (double)ns / (double)NS_PER_SECOND;
}

struct error *publish_set_slice(const struct options *options, const struct profile *profile,
                                struct slice *slice)
{
	const int64_t from_ns = moment_offset_ns(&options->from, profile->start_time_ns);
	const int64_t to_ns = moment_offset_ns(&options->to, profile->start_time_ns);
	const bool has_from = options->from.kind != MOMENT_NONE;
	const bool has_to = options->to.kind != MOMENT_NONE;

	if (has_to && to_ns <= (has_from && from_ns > 0 ? from_ns : 0))
		return error_create(EXIT_STATUS_USAGE,
		                    "--to lies %.3f s after the start, and the slice is to begin "
		                    "%.3f s after it: give a later one",
		                    seconds(to_ns), has_from ? seconds(from_ns) : 0);
	if (has_from)
		slice->from_ns = profile->start_ns + from_ns;
	if (has_to)
		slice->to_ns = profile->start_ns + to_ns;
	return NULL;
}

struct error *publish_check_slice(const struct profile *view, const struct profile *profile)
{
	char start[MOMENT_TEXT_SIZE];

	if (view->n_samples > 0 && view->duration_ns >= view->period_ns)
		return NULL;
	moment_format(profile->start_time_ns, false, start);
	return error_create(EXIT_STATUS_USAGE,
	                    "between --from and --to there are less than two ticks: sampling began "
	                    "at %s and lasted %.3f s",
	                    start, seconds(profile->duration_ns));
}

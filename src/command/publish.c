#include "publish.h"

#include "memory.h"
#include "options.h"
#include "profile.h"
#include "selection.h"
#include "summary.h"
#include "timeline.h"
#include "writer.h"

struct error *publish(const struct options *options, const struct publication *publication,
                      FILE *stream)
{
	const struct selection selection = options_selection(options);
	const struct profile *profile =
	    publication->timeline ? publication->whole : publication->part;
	_cleanup_free_ bool *selected = selection_apply(&selection, profile, publication->modules,
	                                                publication->symbols, options->syscalls);
	if (publication->timeline && selected)
		timeline_select(publication->timeline, selected);
	const struct report report = {
	    .timeline = publication->timeline,
	    .profile = profile,
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
		summary_print_selection(profile, selected);
	return error;
}

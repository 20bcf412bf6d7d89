// SPDX-License-Identifier: MIT
#include "diff_command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "diff_folded.h"
#include "error.h"
#include "input_limit.h"
#include "input_file.h"
#include "local_files.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "profile_merge.h"
#include "write_report.h"
#include "record.h"
#include "recording.h"
#include "summary.h"
#include "view.h"
#include "weights.h"
#include "writer.h"

// One of the two: a recording with its names, or a folded profile's text.
struct side {
	const char *path;
	bool is_recording;
	struct recording recording;
	struct view view; // of the recording
	struct symbols found;
	char *text; // folded
	size_t size;
};

static void side_deinit(struct side *side)
{
	if (side->is_recording)
		recording_deinit(&side->recording);
	view_deinit(&side->view);
	symbols_deinit(&side->found);
	free(side->text);
}

static const struct symbols *symbols_of(const struct side *side)
{
	return side->recording.has_symbols ? &side->recording.symbols : &side->found;
}

static struct error *replay(const struct options *options, struct side *side)
{
	struct recording *recording = &side->recording;
	const struct symbolize_options names = {.inlines = options->inlines};
	struct error *error = view_begin(&side->view, options, &recording->profile);

	if (error)
		return error;
	recording_replay(recording);
	if (!recording->has_symbols) {
		input_limit_end();
		local_files_find(&recording->modules, NULL);
		symbolize(&recording->profile, &recording->modules, &names, &side->found);
	}
	return view_end(&side->view);
}

static struct error *read_side(const struct options *options, const char *path, struct side *ret)
{
	uint8_t *bytes;

	input_limit_begin(input_file_name(path));
	struct error *error = input_file_read(path, &bytes, &ret->size);
	if (error)
		return error;
	ret->path = input_file_name(path);
	ret->text = (char *)bytes;
	if (ret->size >= 2 && memcmp(ret->text, "\x1f\x8b", 2) == 0)
		return error_create(EXIT_STATUS_TARGET,
		                    "%s looks like a pprof profile: diff reads recordings and "
		                    "folded profiles; for pprof use go tool pprof -diff_base",
		                    ret->path);
	if (ret->size < RECORD_MAGIC_BYTES ||
	    memcmp(ret->text, RECORD_MAGIC, RECORD_MAGIC_BYTES) != 0)
		return NULL;
	error = recording_open_bytes(ret->path, (uint8_t *)take_pointer(ret->text), ret->size,
	                             &ret->recording);
	if (error)
		return error;
	ret->is_recording = true;
	return replay(options, ret);
}

static struct report_source report_source_of(struct side *side)
{
	return (struct report_source){
	    .part = &side->view.part,
	    .whole = &side->recording.profile,
	    .timeline = view_timeline(&side->view),
	    .modules = &side->recording.modules,
	    .symbols = symbols_of(side),
	    .pid = side->recording.pid,
	    .children = side->recording.children,
	};
}

static struct error *write_side(const struct options *options, struct side *side, FILE *stream)
{
	const struct report_source source = report_source_of(side);

	return write_report(options, &source, stream);
}

static struct error *diff_page(const struct options *options, struct side *a, struct side *b,
                               FILE *stream)
{
	const struct report_source a_source = report_source_of(a);
	const struct report_source b_source = report_source_of(b);

	return write_report_diff(options, &a_source, &b_source, stream);
}

// The recording as folded text, with all filters.
static struct error *fold(const struct options *options, struct side *side)
{
	if (!side->is_recording)
		return NULL;
	FILE *stream = open_memstream(&side->text, &side->size);
	if (!stream)
		return error_create(EXIT_STATUS_OUTPUT, "no memory for a profile");
	struct error *error = write_side(options, side, stream);
	const bool failed = ferror(stream) != 0;
	if ((fclose(stream) != 0 || failed) && !error)
		error = error_create(EXIT_STATUS_TARGET, "%s is too large as folded stacks",
		                     side->path);
	return error;
}

static struct error *diff_texts(const struct options *options, struct side *a, struct side *b,
                                FILE *stream)
{
	struct error *error = fold(options, a);

	if (!error)
		error = fold(options, b);
	if (error)
		return error;
	uint64_t n_bad;
	error = diff_folded(&(struct folded_text){a->path, a->text, a->size},
	                    &(struct folded_text){b->path, b->text, b->size}, options->normalize,
	                    stream, &n_bad);
	if (!error && n_bad > 0)
		fprintf(stderr, "profiler: left out %" PRIu64 " lines that are not folded stacks\n",
		        n_bad);
	return error;
}

static double wall_of(const struct profile *profile)
{
	double wall_ns = 0;

	for (size_t i = 0; i < profile->n_samples; i++)
		wall_ns += (double)profile->samples[i].wall_ns;
	return wall_ns;
}

static struct error *diff_recordings(const struct options *options, const struct side *a,
                                     const struct side *b, FILE *stream)
{
	const double a_wall = wall_of(&a->view.part);
	const double weight =
	    options->normalize && a_wall > 0 ? wall_of(&b->view.part) / a_wall : 1;
	struct merged merged = {0};
	struct weighed a_weighed, b_weighed;

	weighed_init(&a_weighed, &a->view.part);
	weighed_init(&b_weighed, &b->view.part);
	merged_add(&merged, &a_weighed.profile, &a->recording.modules, symbols_of(a), -weight);
	merged_add(&merged, &b_weighed.profile, &b->recording.modules, symbols_of(b), 1);
	weighed_deinit(&a_weighed);
	weighed_deinit(&b_weighed);
	struct error *error = write_report(options,
	                                   &(struct report_source){
	                                       .part = &merged.profile,
	                                       .modules = &merged.modules,
	                                       .symbols = &merged.symbols,
	                                       .pid = b->recording.pid,
	                                       .children = b->recording.children,
	                                   },
	                                   stream);
	merged_deinit(&merged);
	return error;
}

static struct error *write_diff(const struct options *options, struct side *a, struct side *b,
                                struct output *output)
{
	struct error *error;

	if (options->writer == &writer_folded)
		error = diff_texts(options, a, b, output_stream(output));
	else if (a->is_recording && b->is_recording && options->writer == &writer_html)
		error = diff_page(options, a, b, output_stream(output));
	else if (a->is_recording && b->is_recording)
		error = diff_recordings(options, a, b, output_stream(output));
	else
		error = error_create(EXIT_STATUS_USAGE,
		                     "diff: %s is folded, so the difference can only be folded: "
		                     "use -f folded, or two recordings",
		                     a->is_recording ? b->path : a->path);
	return error ? error : output_finish(output, NULL);
}

struct error *diff_command(const struct options *asked)
{
	struct options options = *asked;
	struct side a = {0}, b = {0};
	struct output *output = NULL;

	options.quiet = true; // sums of differences mean nothing
	struct error *error = read_side(&options, options.recording, &a);
	if (!error)
		error = read_side(&options, options.other, &b);
	if (!error)
		error = output_open(options.output ?: "-", options.writer->binary, &output);
	if (!error)
		error = write_diff(&options, &a, &b, output);
	if (!error && !asked->quiet)
		summary_print_output(options.writer, output_name(output));
	output_destroy(output);
	side_deinit(&a);
	side_deinit(&b);
	return error;
}

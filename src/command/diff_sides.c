// SPDX-License-Identifier: MIT
#include "diff_sides.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "input_file.h"
#include "input_limit.h"
#include "memory.h"
#include "option_table.h"
#include "pprof_folded.h"
#include "time_point.h"
#include "write_report.h"

static bool parse_time(const char *text, struct time_point *ret)
{
	return text[0] == '\0' || time_point_parse(text, ret);
}

// Sets the path and the part of the time: PATH, or PATH@FROM..TO, if no file has that name.
static struct error *parse_word(struct diff_input *input, const char *word)
{
	const char *at = strrchr(word, '@'), *dots = at ? strstr(at, "..") : NULL;

	input->path = memory_strdup(word);
	input->name = input_file_name(input->path);
	if (!dots || access(word, F_OK) == 0)
		return NULL;
	_cleanup_free_ char *from = memory_strndup(at + 1, (size_t)(dots - at - 1));
	if (!parse_time(from, &input->options.from) || !parse_time(dots + 2, &input->options.to))
		return option_error("diff: '%s': no time is %s: give FILE@FROM..TO, such as "
		                    "hour.wprof@14:00..14:10 or run.wprof@10s..70s",
		                    word, at + 1);
	input->path[at - word] = '\0';
	return NULL;
}

static struct error *replay(struct diff_input *input, bool timed)
{
	struct recording *recording = &input->recording;
	const struct options *options = &input->options;
	const struct symbolize_options names = {.inlines = options->inlines};
	struct error *error = view_begin(&input->view, options, &recording->profile);

	if (error)
		return error;
	if (timed) {
		timeline_init(&input->timeline, input->view.slice.from_ns, input->view.slice.to_ns);
		profile_follow(&recording->profile, &input->timeline.follower);
	}
	recording_replay(recording);
	if (!recording->has_symbols)
		input_limit_end();
	recording_find_names(recording, NULL, &names);
	return view_end(&input->view);
}

static bool is_page(const struct diff_input *input)
{
	static const char beginning[] = "<!doctype html>";

	return input->size >= strlen(beginning) &&
	       memcmp(input->text, beginning, strlen(beginning)) == 0;
}

static struct error *read_input(struct diff_input *input, const char *word, bool timed)
{
	uint8_t *bytes;
	struct error *error = parse_word(input, word);

	if (error)
		return error;
	input_limit_begin(input->name);
	error = input_file_read(input->path, &bytes, &input->size);
	if (error)
		return error;
	if (pprof_is(bytes, input->size)) {
		error = pprof_fold(input->name, bytes, input->size, &input->text, &input->size);
		free(bytes);
		return error;
	}
	input->text = (char *)bytes;
	if (is_page(input))
		return error_create(EXIT_STATUS_TARGET,
		                    "%s is a page: give the recording or other profile that it "
		                    "was made of",
		                    input->name);
	if (!recording_is(input->text, input->size))
		return NULL;
	error = recording_open_bytes(input->name, (uint8_t *)take_pointer(input->text), input->size,
	                             &input->recording);
	if (error)
		return error;
	input->is_recording = true;
	return replay(input, timed);
}

static void input_destroy(struct diff_input *input)
{
	if (input->is_recording)
		recording_deinit(&input->recording);
	view_deinit(&input->view);
	timeline_deinit(&input->timeline);
	free(input->text);
	free(input->path);
	free(input);
}

struct error *diff_side_read(const struct options *options, const struct diff_files *files,
                             bool timed, struct diff_side *ret)
{
	*ret = (struct diff_side){.is_recording = true};
	for (size_t i = 0; i < files->count; i++) {
		struct diff_input *input = memory_alloc_zeroed(1, sizeof(*input));
		input->options = *options;
		*array_push(ret->items, ret->count, ret->capacity) = input;
		struct error *error = read_input(input, files->items[i], timed);
		if (error)
			return error;
		ret->is_recording &= input->is_recording;
	}
	return NULL;
}

void diff_side_deinit(struct diff_side *side)
{
	for (size_t i = 0; i < side->count; i++)
		input_destroy(side->items[i]);
	free(side->items);
	*side = (struct diff_side){0};
}

struct report_source diff_input_source(struct diff_input *input)
{
	return (struct report_source){
	    .part = &input->view.part,
	    .whole = &input->recording.profile,
	    .timeline = view_timeline(&input->view),
	    .modules = &input->recording.modules,
	    .symbols = &input->recording.symbols,
	    .pid = input->recording.pid,
	    .children = input->recording.children,
	};
}

static struct error *fold(struct diff_input *input)
{
	if (!input->is_recording || input->text)
		return NULL;
	FILE *stream = open_memstream(&input->text, &input->size);
	if (!stream)
		return error_create(EXIT_STATUS_OUTPUT, "no memory for a profile");
	const struct report_source source = diff_input_source(input);
	struct error *error = write_report(&input->options, &source, stream);
	const bool failed = ferror(stream) != 0;
	if ((fclose(stream) != 0 || failed) && !error)
		error = error_create(EXIT_STATUS_TARGET, "%s is too large as folded stacks",
		                     input->name);
	return error;
}

static struct error *fold_side(const struct diff_side *side, struct folded_text **ret)
{
	struct folded_text *texts = memory_alloc_zeroed(side->count, sizeof(*texts));

	*ret = texts;
	for (size_t i = 0; i < side->count; i++) {
		struct diff_input *input = side->items[i];
		struct error *error = fold(input);
		if (error)
			return error;
		texts[i] = (struct folded_text){input->name, input->text, input->size};
	}
	return NULL;
}

struct error *diff_texts_init(const struct options *options, const struct diff_side *before,
                              const struct diff_side *after, struct diff_texts *ret)
{
	*ret = (struct diff_texts){0};
	struct error *error = fold_side(before, &ret->texts[0]);
	if (!error)
		error = fold_side(after, &ret->texts[1]);
	ret->diff = (struct folded_diff){
	    .before = {ret->texts[0], before->count},
	    .after = {ret->texts[1], after->count},
	    .normalize = options->normalize,
	};
	return error;
}

void diff_texts_deinit(struct diff_texts *texts)
{
	free(texts->texts[0]);
	free(texts->texts[1]);
}

void diff_print_bad(uint64_t n_bad)
{
	if (n_bad > 0)
		fprintf(stderr, "profiler: left out %" PRIu64 " lines that are not folded stacks\n",
		        n_bad);
}

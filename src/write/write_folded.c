// SPDX-License-Identifier: MIT
// Folded stacks, one line each: root;...;leaf COUNT, which flamegraph.pl, inferno and speedscope
// read. Lines are merged and sorted (as LC_ALL=C sort), so that equal profiles make equal files.
//
// A line is never held as text: its bytes come from the frames' names while lines are compared and
// written.
#include "writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "frame_name.h"
#include "frame_table.h"
#include "memory.h"
#include "profile.h"
#include "string_table.h"
#include "text.h"

enum { MAX_COUNT_CHARACTERS = 24 };

#define NO_FRAME UINT32_MAX

struct folded_line {
	struct frame_walk frames;
	uint32_t process_frame; // string, or NO_FRAME
	uint32_t thread_frame;
	uint64_t count;
};

struct folded {
	const struct report *report;
	struct frame_table frames;
	struct string_table names; // of frames, as written
	uint32_t *frame_names;     // strings, by frame
	struct folded_line *lines;
	size_t n_lines, lines_capacity;
	bool compare_counts; // compare the counts too, as they are final
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

// Changes a name that ends in " 12" or " 1.5": a reader would take that for a second count.
static void hide_trailing_number(char *name)
{
	size_t i = strlen(name);

	while (i > 0 && (is_digit(name[i - 1]) || name[i - 1] == '.'))
		i--;
	if (i > 0 && name[i - 1] == ' ' && is_digit(name[i]))
		name[i - 1] = '_';
}

static void replace_all(char *text, char from, char to)
{
	for (char *c = strchr(text, from); c; c = strchr(c, from))
		*c = to;
}

// Adds a frame's name as bytes that are safe in a line; takes over `name`.
static uint32_t frame_string(struct folded *folded, char *name)
{
	_cleanup_free_ char *clean = text_clean(name, strlen(name), TEXT_UNLIMITED);

	free(name);
	replace_all(clean, ';', ':');
	hide_trailing_number(clean);
	return string_table_intern(&folded->names, clean[0] ? clean : "[unknown]");
}

// Adds a root frame named after a process or thread; takes over `name`.
static uint32_t root_frame(struct folded *folded, char *name)
{
	replace_all(name, ' ', '_');
	if (name[0] == '#') // readers would take the line for a comment
		name[0] = '_';
	return frame_string(folded, name);
}

// Returns the name of a frame: "function (file.c:12)_[i]". The palettes of flamegraph.pl and
// inferno know the suffix of inlined calls.
static char *frame_text(const struct folded *folded, const struct frame *frame)
{
	const struct frame_table *table = &folded->frames;
	const struct frame_function *function = &table->functions[frame->function];
	const char *name = frame_table_string(table, function->name);
	const char *file = text_base_name(frame_table_string(table, function->file));
	const char *suffix = function->kind == FRAME_INLINED ? "_[i]" : "";

	if (!folded->report->lines || file[0] == '\0')
		return memory_printf("%s%s", name, suffix);
	if (frame->line == 0)
		return memory_printf("%s (%s)%s", name, file, suffix);
	return memory_printf("%s (%s:%" PRIu32 ")%s", name, file, frame->line, suffix);
}

static void name_frames(struct folded *folded)
{
	const struct frame_table *table = &folded->frames;

	folded->frame_names = memory_alloc_zeroed(table->n_frames + 1, sizeof(uint32_t));
	for (size_t i = 0; i < table->n_frames; i++) {
		const struct frame *frame = &table->frames[i];
		char *text = frame_text(folded, frame);
		folded->frame_names[i] = table->functions[frame->function].kind == FRAME_LABEL
		                             ? root_frame(folded, text)
		                             : frame_string(folded, text);
	}
}

static void collect_lines(struct folded *folded)
{
	const struct report *report = folded->report;
	const struct profile *profile = report->profile;

	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		const struct thread *thread = &profile->threads[sample->thread];

		if ((report->selected && !report->selected[i]) || sample->count == 0)
			continue;
		frame_table_add(&folded->frames, sample);
		*array_push(folded->lines, folded->n_lines,
		            folded->lines_capacity) = (struct folded_line){
		    .frames = frame_walk_begin(&folded->frames, sample),
		    .process_frame = report->process_roots
		                         ? root_frame(folded, frame_name_process(profile, thread))
		                         : NO_FRAME,
		    .thread_frame =
		        report->thread_roots
		            ? root_frame(folded, memory_strdup(frame_name_thread(thread)))
		            : NO_FRAME,
		    .count = sample->count,
		};
	}
}

// Goes through the frames of a line, root first.
struct frame_reader {
	const struct folded *folded;
	uint32_t process_frame; // NO_FRAME: none, or already read
	uint32_t thread_frame;
	struct frame_walk walk;
};

static struct frame_reader frame_reader(const struct folded *folded, const struct folded_line *line)
{
	return (struct frame_reader){
	    .folded = folded,
	    .process_frame = line->process_frame,
	    .thread_frame = line->thread_frame,
	    .walk = line->frames,
	};
}

static const char *take_frame(struct frame_reader *reader, uint32_t *frame)
{
	const char *name = reader->folded->names.items[*frame];

	*frame = NO_FRAME;
	return name;
}

// Returns the next frame's name, or NULL after the leaf. Equal names are the same pointer.
static const char *next_frame(struct frame_reader *reader)
{
	const struct folded *folded = reader->folded;
	uint32_t frame;

	if (reader->process_frame != NO_FRAME)
		return take_frame(reader, &reader->process_frame);
	if (reader->thread_frame != NO_FRAME)
		return take_frame(reader, &reader->thread_frame);
	return frame_walk_next(&reader->walk, &frame)
	           ? folded->names.items[folded->frame_names[frame]]
	           : NULL;
}

// Goes through the bytes of a line from the middle of a frame on: names with ';' between them, and
// the count. An array of names would be simpler, but larger than the rest of the profile.
struct byte_reader {
	struct frame_reader frames;
	const char *rest; // of the current name or count
	bool in_count;
	char count[MAX_COUNT_CHARACTERS]; // begins with its space; empty: not compared
};

static void byte_reader_init(struct byte_reader *reader, const struct folded_line *line,
                             const struct frame_reader *frames, const char *name)
{
	reader->frames = *frames;
	reader->count[0] = '\0';
	if (frames->folded->compare_counts)
		snprintf(reader->count, sizeof(reader->count), " %" PRIu64, line->count);
	reader->in_count = false;
	reader->rest = name;
}

// Returns the next byte, '\0' at the end.
static unsigned char next_byte(struct byte_reader *reader)
{
	if (*reader->rest != '\0')
		return *reader->rest++;
	if (reader->in_count)
		return '\0';
	reader->rest = next_frame(&reader->frames);
	if (reader->rest)
		return ';';
	reader->in_count = true;
	reader->rest = reader->count;
	return *reader->rest != '\0' ? *reader->rest++ : '\0';
}

static int compare_lines(const void *a_pointer, const void *b_pointer, void *context)
{
	const struct folded_line *a = a_pointer, *b = b_pointer;
	struct frame_reader a_frames = frame_reader(context, a);
	struct frame_reader b_frames = frame_reader(context, b);
	const char *a_name, *b_name;

	if (a->process_frame == b->process_frame && a->thread_frame == b->thread_frame)
		frame_walk_skip_common(&a_frames.walk, &b_frames.walk);
	do {
		a_name = next_frame(&a_frames);
		b_name = next_frame(&b_frames);
	} while (a_name == b_name && a_name);
	// Merged lines are never equal, so the counts of equal stacks need no look. The line that
	// ends first goes first: its count's ' ', or nothing, is less than ';'.
	if (!a_name || !b_name)
		return (a_name != NULL) - (b_name != NULL);

	struct byte_reader a_bytes, b_bytes;
	byte_reader_init(&a_bytes, a, &a_frames, a_name);
	byte_reader_init(&b_bytes, b, &b_frames, b_name);
	unsigned char a_byte, b_byte;
	do {
		a_byte = next_byte(&a_bytes);
		b_byte = next_byte(&b_bytes);
	} while (a_byte == b_byte && a_byte != '\0');
	return a_byte - b_byte;
}

static void sort_lines(struct folded *folded)
{
	if (folded->n_lines > 0)
		qsort_r(folded->lines, folded->n_lines, sizeof(*folded->lines), compare_lines,
		        folded);
}

// Sorts twice: by the stacks alone, so that equal ones meet, and then by whole lines, because the
// count of "f" is compared with the rest of "f (file.c)".
static void merge_and_sort_lines(struct folded *folded)
{
	size_t n = 0;

	sort_lines(folded);
	for (size_t i = 0; i < folded->n_lines; i++)
		if (n > 0 && compare_lines(&folded->lines[n - 1], &folded->lines[i], folded) == 0)
			folded->lines[n - 1].count += folded->lines[i].count;
		else
			folded->lines[n++] = folded->lines[i];
	folded->n_lines = n;
	folded->compare_counts = true;
	sort_lines(folded);
}

static void put_line(const struct folded *folded, const struct folded_line *line, FILE *stream)
{
	struct frame_reader frames = frame_reader(folded, line);
	const char *separator = "";

	for (const char *name = next_frame(&frames); name; name = next_frame(&frames)) {
		fputs(separator, stream);
		fputs(name, stream);
		separator = ";";
	}
	fprintf(stream, " %" PRIu64 "\n", line->count);
}

static struct error *write_folded(const struct report *report, FILE *stream)
{
	struct folded folded = {.report = report};

	frame_table_init(&folded.frames, report);
	collect_lines(&folded);
	name_frames(&folded);
	merge_and_sort_lines(&folded);
	for (size_t i = 0; i < folded.n_lines && !ferror(stream); i++)
		put_line(&folded, &folded.lines[i], stream);

	frame_table_deinit(&folded.frames);
	string_table_deinit(&folded.names);
	free(folded.frame_names);
	free(folded.lines);
	return NULL;
}

const struct writer writer_folded = {
    .name = "folded",
    .suffixes = (const char *const[]){".folded", ".collapsed", ".txt", NULL},
    .default_suffix = ".folded",
    .binary = false,
    .next_command = "profiler view %s",
    .write = write_folded,
};

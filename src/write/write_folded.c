// SPDX-License-Identifier: MIT
// Folded stacks, one line each: root;...;leaf COUNT, which flamegraph.pl, inferno and speedscope
// read. Lines are merged and sorted (as LC_ALL=C sort), so that equal profiles make equal files.
//
// A line is never held as text but as a stack's number: its bytes come from the frames' names while
// lines are compared and written.
#include "writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "frame_name.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "string_table.h"
#include "symbolize.h"
#include "text.h"

enum { MAX_COUNT_CHARACTERS = 24 };

#define NO_FRAME UINT32_MAX

// The frames of one location or wait, outermost first.
struct location_frames {
	size_t first;
	uint32_t count; // 0: not looked up yet, or a wait without frames
};

struct folded_line {
	uint32_t stack;
	uint32_t wait;
	uint32_t process_frame; // string, or NO_FRAME
	uint32_t thread_frame;
	uint32_t labels;
	uint64_t count;
};

struct folded {
	const struct report *report;
	struct string_table names; // of frames, as written
	uint32_t *frame_ids;       // strings
	size_t n_frame_ids, frame_ids_capacity;
	struct location_frames *locations; // by the profile's location
	struct location_frames *waits;     // by its wait
	struct location_frames *labels;    // by its set of labels: those that are root frames
	uint32_t end_frames[N_STACK_ENDS]; // strings
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

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

// Adds the frame of a line: "function (file.c:12)_[i]". The palettes of flamegraph.pl and inferno
// know the suffix of inlined calls.
static uint32_t line_frame(struct folded *folded, const struct line *line, bool inlined)
{
	const struct function *function = &folded->report->symbols->functions[line->function];
	const char *suffix = inlined ? "_[i]" : "";
	const bool has_file = function->file && function->file[0] != '\0';

	if (!folded->report->lines || !has_file)
		return frame_string(folded, memory_printf("%s%s", function->name, suffix));
	const char *file = base_name(function->file);
	if (line->line == 0)
		return frame_string(folded,
		                    memory_printf("%s (%s)%s", function->name, file, suffix));
	return frame_string(folded, memory_printf("%s (%s:%" PRIu32 ")%s", function->name, file,
	                                          line->line, suffix));
}

static void push_frame(struct folded *folded, uint32_t frame)
{
	*array_push(folded->frame_ids, folded->n_frame_ids, folded->frame_ids_capacity) = frame;
}

static void look_up_location(struct folded *folded, uint32_t id)
{
	const struct report *report = folded->report;
	const struct location *location = &report->profile->locations[id];
	const struct location_lines *lines = &report->symbols->locations[id];
	struct location_frames *frames = &folded->locations[id];

	if (frames->count > 0)
		return;
	frames->first = folded->n_frame_ids;
	frames->count = lines->count ? lines->count : 1;
	for (uint32_t i = lines->count; i-- > 0;)
		push_frame(folded, line_frame(folded, &report->symbols->lines[lines->first + i],
		                              i + 1 < lines->count));
	if (lines->count == 0) {
		const struct module *module = report->modules->items[location->module];
		char *name = frame_name_unresolved(module, location->address);
		push_frame(folded, frame_string(folded, name));
	}
}

static void look_up_waits(struct folded *folded)
{
	const struct report *report = folded->report;

	for (size_t i = 1; i < report->profile->n_waits; i++) {
		const struct wait *wait = &report->profile->waits[i];
		struct location_frames *frames = &folded->waits[i];
		char *name;

		while ((name = frame_name_wait(wait, report->syscalls, frames->count))) {
			push_frame(folded, frame_string(folded, name));
			frames->count++;
		}
		frames->first = folded->n_frame_ids - frames->count;
		for (uint32_t j = 0; j < frames->count / 2; j++) {
			uint32_t *a = &folded->frame_ids[frames->first + j];
			uint32_t *b = &folded->frame_ids[folded->n_frame_ids - 1 - j];
			const uint32_t inner = *a;
			*a = *b;
			*b = inner;
		}
	}
}

static void look_up_labels(struct folded *folded)
{
	const struct report *report = folded->report;
	const char *const none[] = {NULL}, *const *keys = report->label_frames ?: none;

	for (size_t i = 1; i < report->profile->n_labels; i++) {
		struct location_frames *frames = &folded->labels[i];
		frames->first = folded->n_frame_ids;
		for (size_t k = 0; keys[k]; k++) {
			char *name = frame_name_label(report->profile->labels[i], keys[k]);
			if (name)
				push_frame(folded, root_frame(folded, name));
		}
		frames->count = (uint32_t)(folded->n_frame_ids - frames->first);
	}
}

static void look_up_stack(struct folded *folded, const struct stack *stack)
{
	for (uint32_t i = 0; i < stack->n_frames; i++)
		look_up_location(folded, folded->report->profile->location_ids[stack->first + i]);
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
		look_up_stack(folded, &profile->stacks[sample->stack]);
		*array_push(folded->lines, folded->n_lines,
		            folded->lines_capacity) = (struct folded_line){
		    .stack = sample->stack,
		    .wait = sample_leaf_wait(profile, sample),
		    .labels = sample->labels,
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
	const struct stack *stack;
	uint32_t process_frame; // NO_FRAME: none, or already read; likewise the next two
	uint32_t thread_frame;
	uint32_t end_frame;
	uint32_t n_locations; // still to be read, wholly or in part
	uint32_t n_read;      // frames already read of the current location
	const struct location_frames *wait;
	uint32_t n_wait_read; // frames already read of the wait
	const struct location_frames *labels;
	uint32_t n_labels_read; // likewise
};

static struct frame_reader frame_reader(const struct folded *folded, const struct folded_line *line)
{
	const struct stack *stack = &folded->report->profile->stacks[line->stack];
	const enum stack_end end = frame_name_stack_end(stack);

	return (struct frame_reader){
	    .folded = folded,
	    .stack = stack,
	    .process_frame = line->process_frame,
	    .thread_frame = line->thread_frame,
	    .end_frame = end == STACK_COMPLETE ? NO_FRAME : folded->end_frames[end],
	    .n_locations = stack->n_frames,
	    .wait = &folded->waits[line->wait],
	    .labels = &folded->labels[line->labels],
	};
}

static const char *take_frame(struct frame_reader *reader, uint32_t *frame)
{
	const char *name = reader->folded->names.items[*frame];

	*frame = NO_FRAME;
	return name;
}

// Returns the next of the frames, of which *n were read; NULL: there are no more.
static const char *next_of(const struct folded *folded, const struct location_frames *frames,
                           uint32_t *n)
{
	return *n < frames->count ? folded->names.items[folded->frame_ids[frames->first + (*n)++]]
	                          : NULL;
}

// Returns the next frame's name, or NULL after the leaf. Equal names are the same pointer.
static const char *next_frame(struct frame_reader *reader)
{
	const struct folded *folded = reader->folded;

	if (reader->process_frame != NO_FRAME)
		return take_frame(reader, &reader->process_frame);
	if (reader->thread_frame != NO_FRAME)
		return take_frame(reader, &reader->thread_frame);
	const char *label = next_of(folded, reader->labels, &reader->n_labels_read);
	if (label)
		return label;
	if (reader->end_frame != NO_FRAME)
		return take_frame(reader, &reader->end_frame);
	if (reader->n_locations == 0)
		return next_of(folded, reader->wait, &reader->n_wait_read);
	const size_t leaf_first = reader->stack->first + reader->n_locations - 1;
	const uint32_t location = folded->report->profile->location_ids[leaf_first];
	const struct location_frames *frames = &folded->locations[location];
	const uint32_t frame = folded->frame_ids[frames->first + reader->n_read];

	if (++reader->n_read == frames->count) {
		reader->n_locations--;
		reader->n_read = 0;
	}
	return folded->names.items[frame];
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

	folded.locations =
	    memory_alloc_zeroed(report->profile->n_locations, sizeof(*folded.locations));
	folded.waits = memory_alloc_zeroed(report->profile->n_waits + 1, sizeof(*folded.waits));
	folded.labels = memory_alloc_zeroed(report->profile->n_labels + 1, sizeof(*folded.labels));
	look_up_waits(&folded);
	look_up_labels(&folded);
	for (enum stack_end end = 0; end < N_STACK_ENDS; end++)
		folded.end_frames[end] = frame_string(&folded, frame_name_truncated(end));
	collect_lines(&folded);
	merge_and_sort_lines(&folded);
	for (size_t i = 0; i < folded.n_lines && !ferror(stream); i++)
		put_line(&folded, &folded.lines[i], stream);

	string_table_deinit(&folded.names);
	free(folded.frame_ids);
	free(folded.locations);
	free(folded.waits);
	free(folded.labels);
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

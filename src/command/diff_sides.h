// SPDX-License-Identifier: MIT
// diff_sides: what `profiler diff` compares: on each side recordings, or folded or pprof profiles.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "diff_command.h"
#include "diff_folded.h"
#include "options.h"
#include "recording.h"
#include "symbolize.h"
#include "timeline.h"
#include "view.h"
#include "write_report.h"

struct error;

// A recording with its names, or a folded profile's text, which a pprof profile becomes.
struct diff_input {
	char *path;
	const char *name;       // of the file, for messages; borrowed from path, or static
	struct options options; // with the part of the time; borrows from the command's
	bool is_recording;
	struct recording recording;
	struct view view;         // of the recording
	struct timeline timeline; // likewise, if asked for
	char *text;               // folded
	size_t size;
};

struct diff_side {
	struct diff_input **items;
	size_t count, capacity;
	bool is_recording; // all of them are
};

// Reads the files of one side. `timed`: with timelines. *ret must be freed, even after an error.
struct error *diff_side_read(const struct options *options, const struct diff_files *files,
                             bool timed, struct diff_side *ret);
void diff_side_deinit(struct diff_side *side);

// Both sides as folded texts.
struct diff_texts {
	struct folded_text *texts[2]; // of each side
	struct folded_diff diff;
};

// Makes recordings folded text, with all filters, if the options' format is that. *ret is to be
// freed, even after an error.
struct error *diff_texts_init(const struct options *options, const struct diff_side *before,
                              const struct diff_side *after, struct diff_texts *ret);
void diff_texts_deinit(struct diff_texts *texts);

// Prints how many lines were left out, if any.
void diff_print_bad(uint64_t n_bad);

// Returns the recording for write_report; borrowed.
struct report_source diff_input_source(struct diff_input *input);

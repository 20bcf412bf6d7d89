// SPDX-License-Identifier: MIT
// top_source: the recording that `profiler top` shows: a whole file, or a stream that still grows.
//
// Call top_source_open for a file, or top_source_begin and top_source_feed for a stream; then
// top_source_look as often as needed.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "figures_log.h"
#include "recording.h"
#include "timeline.h"
#include "top_model.h"

struct debug_sources;
struct error;
struct symbolizer;

struct top_source {
	struct recording recording;
	bool is_stream;  // its processes are this machine's then
	bool ended;      // nothing more comes
	int64_t now_ns;  // the time since its start up to which it is known
	int64_t keep_ns; // a stream's spans older than this are forgotten

	// Private to top_source.c.
	struct timeline timeline;
	struct figures_log figures;
	struct symbolizer *symbolizer;
	size_t n_looked_up;  // locations whose names were looked up
	uint64_t n_codes;    // the recording's, by then
	size_t forget_above; // old spans are forgotten when there are more than this
	bool *selected;
	struct top_own *own;
	struct span *spans; // of the last look
	size_t spans_capacity;
	struct weights *weights; // of the last look
};

// Reads all of the file. If it has no names, they are looked up on this machine.
struct error *top_source_open(const char *path, const struct debug_sources *sources, bool inlines,
                              struct top_source *ret);

// Begins a source for a stream, of a process of this machine. Do not move *ret afterwards: the
// stream refers to it.
void top_source_begin(const struct debug_sources *sources, bool inlines, int64_t keep_ns,
                      struct top_source *ret);

// Takes the stream's next bytes, and its modules' files from the socket `files` (passed_files.h; 0:
// none). False if it is damaged.
bool top_source_feed(struct top_source *source, int files, const void *bytes, size_t size);

// Call it when nothing more comes.
void top_source_end(struct top_source *source);

// Looks up names of a stream that are not known yet, for about budget_ns at most.
void top_source_find_names(struct top_source *source, int64_t budget_ns);

void top_source_deinit(struct top_source *source);

// Restricts looks to some samples: one bool for each sample of a finished recording; NULL: all.
// Takes `selected` over.
void top_source_select(struct top_source *source, bool *selected);

// Makes the model of a window, which is valid until the source changes. The caller deinits it.
void top_source_look(struct top_source *source, int64_t from_ns, int64_t to_ns,
                     const struct top_choice *choice, struct top_model *ret);

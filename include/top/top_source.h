// SPDX-License-Identifier: MIT
// top_source: the recording that is looked at: a file, whole, or a stream that comes meanwhile.
//
//     top_source_open for a file, or top_source_begin and top_source_feed for a stream; then
//     top_source_look as often as needed
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording.h"
#include "timeline.h"
#include "top_model.h"

struct debug_sources;
struct error;
struct symbolizer;

struct top_source {
	struct recording recording;
	bool is_stream;  // and its processes are this machine's
	bool ended;      // nothing more comes
	int64_t now_ns;  // up to when it is known, from its start
	int64_t keep_ns; // of a stream: what is older is forgotten

	// Private to top_source.c.
	struct timeline timeline;
	struct symbols found; // where the recording has no names itself
	struct symbolizer *symbolizer;
	size_t n_looked_up;  // locations
	size_t forget_above; // spans
	bool *selected;
	struct span *spans; // of the last look
	size_t spans_capacity;
};

// Reads all of the file. Names are looked up on this machine where it has none.
struct error *top_source_open(const char *path, const struct debug_sources *sources, bool inlines,
                              struct top_source *ret);

// A recording that comes as a stream, of a process of this machine: nothing is known yet. The
// source stays where it is.
void top_source_begin(const struct debug_sources *sources, bool inlines, int64_t keep_ns,
                      struct top_source *ret);

// The next bytes of it. False: it is damaged.
bool top_source_feed(struct top_source *source, const void *bytes, size_t size);

// Nothing more comes.
void top_source_end(struct top_source *source);

// Looks names up that are not known yet, for about that long at most. For a stream.
void top_source_find_names(struct top_source *source, int64_t budget_ns);

void top_source_deinit(struct top_source *source);

// The names that there are, owned by the source.
const struct symbols *top_source_symbols(const struct top_source *source);

// What of it is looked at, one bool for each sample of a finished recording; taken over. NULL: all.
void top_source_select(struct top_source *source, bool *selected);

// The model of a window; valid until the source changes. The caller deinits it.
void top_source_look(struct top_source *source, int64_t from_ns, int64_t to_ns, bool with_tree,
                     struct top_model *ret);

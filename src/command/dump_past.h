// SPDX-License-Identifier: MIT
// dump_past: the dump of a moment of a recording.
#pragma once

#include "dump.h"
#include "recording.h"

struct debug_sources;
struct error;
struct options;

struct dump_past {
	struct dump dump;
	struct recording recording;
	struct symbols found; // if the recording has no names
};

// Reads options->recording, and takes what all threads did at options->dump.at.
struct error *dump_past_take(const struct options *options, const struct debug_sources *sources,
                             struct dump_past *ret);
// What the threads did at that time since the start, by their spans, of whatever recording: all of
// *dump that the recording knows, but for kinds and order. The dump's parts are set.
void dump_past_fill(struct dump *dump, const struct recording *recording, const struct span *spans,
                    size_t n, int64_t at_ns);

void dump_past_deinit(struct dump_past *past);

// SPDX-License-Identifier: MIT
// dump_past: makes the dump of a moment of a recording.
#pragma once

#include "dump.h"
#include "recording.h"

struct debug_sources;
struct error;
struct options;

struct dump_past {
	struct dump dump;
	struct recording recording;
};

// Reads options->recording, and makes the dump of options->dump.at.
struct error *dump_past_take(const struct options *options, const struct debug_sources *sources,
                             struct dump_past *ret);

// Adds to *dump, whose profile, modules and symbols are set, what each thread of the recording did
// at at_ns since its start, as the spans tell. Sets neither the kinds nor the order.
void dump_past_fill(struct dump *dump, const struct recording *recording, const struct span *spans,
                    size_t n, int64_t at_ns);

void dump_past_deinit(struct dump_past *past);

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
void dump_past_deinit(struct dump_past *past);

// SPDX-License-Identifier: MIT
// record_news: what a recording's block tells before what happened: the modules, locations, stacks
// and waits that are new since the last block. A part of record_writer, whose state stands here.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"
#include "protobuf.h"
#include "record_block.h"
#include "record_writer.h"

struct module;
struct modules;
struct run_stats;

enum { RECORD_LIST_BYTES = 1 << 16 }; // of a record that is a list: then another one begins

// Of a thread, while nobody reads: whether its span has changed since, and the ticks of those spans
// that have begun and ended.
struct lost {
	bool changed;
	uint64_t running, waiting;
};

struct record_writer {
	struct span_follower follower; // first
	struct record_options options;
	struct profile *profile; // borrowed, as the next two
	const struct modules *modules;
	const struct run_stats *stats;
	struct record_file file;

	struct protobuf block;   // records: what is new since the last block, then...
	struct protobuf samples; // ...what happened
	struct protobuf entries; // of the RECORD_SAMPLES at hand
	struct protobuf record;  // room for the one that is built
	int64_t entries_ns;      // its time
	int64_t base_ns;         // that of the one before in this block, from the start
	int64_t flushed_ns;
	const struct module *program;                       // as told
	size_t n_modules, n_locations, n_stacks, n_threads; // that are written
	size_t n_waits, n_labels;
	size_t *n_mappings;        // of each module
	bool *has_build_id;        // likewise
	size_t *n_frame_functions; // that are written, likewise
	size_t modules_capacity, build_ids_capacity, frame_functions_capacity;
	uint64_t *begun_ticks;  // of each thread's span, when it began
	int64_t *begun_ends_ns; // likewise
	size_t begun_capacity, begun_ends_capacity;
	uint64_t ticks, missed, thinned; // told in figures
	int64_t held_ns;
	bool stalled;          // nobody reads the stream (record_options.never_waits)
	uint64_t lost_samples; // in all, therefore
	uint32_t lost_stack;   // what stands for their stacks
	struct lost *lost;     // of each thread
	size_t n_lost, lost_capacity;
	bool full;               // --max-size is reached
	uint64_t samples_before; // counted when it was full
	uint64_t dropped_names;
};

// Each appends to writer->block what is new.
void record_put_modules(struct record_writer *writer);
void record_put_locations(struct record_writer *writer);
void record_put_stacks(struct record_writer *writer);

// The wait, also again when more is known of it.
void record_put_wait(struct record_writer *writer, uint32_t id);

// A set of labels.
void record_put_labels(struct record_writer *writer, uint32_t id);

// Code that was made at run time has another module's name once its own names are found.
void record_put_module_names(struct record_writer *writer);

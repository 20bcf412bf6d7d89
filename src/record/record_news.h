// SPDX-License-Identifier: MIT
// record_news: writes the modules, locations, stacks and waits that are new since the last block,
// which a block tells before what happened. A part of record_writer, whose state is defined here.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "passed_files.h"
#include "profile.h"
#include "protobuf.h"
#include "record_block.h"
#include "record_writer.h"

struct module;
struct modules;
struct run_stats;

enum { RECORD_LIST_BYTES = 1 << 16 }; // a list that grows beyond this goes on in another record

// A thread while nobody reads the stream: whether it has entered another span since, and the ticks
// of spans that have both begun and ended.
struct lost {
	bool changed;
	uint64_t ticks[N_THREAD_STATES];
};

struct record_writer {
	struct span_follower follower; // must be first
	struct record_options options;
	struct profile *profile; // borrowed, as the next two
	const struct modules *modules;
	const struct run_stats *stats;
	struct record_file file;
	struct passed_files files;

	struct protobuf block;   // the block's records: first what is new since the last block...
	struct protobuf samples; // ...then what happened
	struct protobuf entries; // of the RECORD_SAMPLES that is being built
	struct protobuf record;  // room to build any other record in
	int64_t entries_ns;      // the time of `entries`
	int64_t base_ns;         // the time of the previous record in this block, from the start
	int64_t flushed_ns;
	const struct module *program;                       // as written
	size_t n_modules, n_locations, n_stacks, n_threads; // how many are written
	size_t n_waits, n_labels, n_cpu_waits;
	size_t *meaning_sizes; // of each wait, as it is written: more may become known of it
	size_t meanings_capacity;
	size_t *n_mappings;        // of each module: how many are written
	bool *has_build_id;        // of each module: it is written
	size_t *n_frame_functions; // of each module: how many are written
	const char **unreadable;   // of each module: as written
	size_t modules_capacity, build_ids_capacity, frame_functions_capacity, unreadable_capacity;
	size_t n_code_locations; // locations whose code's names are written, but for those...
	uint32_t *nameless;      // ...locations, for lack of a name
	size_t n_nameless, nameless_capacity;
	size_t n_codes;         // that all perf maps had when those were looked at last
	uint64_t *begun_ticks;  // of each thread's span, when it began
	int64_t *begun_ends_ns; // likewise; if it has none, up to when its time is told
	size_t n_begun, begun_capacity, begun_ends_capacity;
	uint64_t ticks, missed, thinned; // as last written in RECORD_FIGURES, as held_ns
	int64_t held_ns;
	bool stalled;          // nobody reads the stream
	uint64_t lost_samples; // without their stacks for that reason, in all
	uint32_t lost_stack;   // is written in the place of their stacks
	struct lost *lost;     // of each thread
	size_t n_lost, lost_capacity;
	// Of a run that forgets.
	uint32_t *free_threads; // whose numbers stood for others before, and are used anew
	size_t n_free_threads, free_capacity;
	bool full;               // --max-size is reached
	uint64_t samples_before; // how many there were when it got full
};

// Append to writer->block what is new.
void record_put_modules(struct record_writer *writer);
void record_put_locations(struct record_writer *writer);
void record_put_code_names(struct record_writer *writer);
void record_put_stacks(struct record_writer *writer);

// Returns the length of what is known of the wait's descriptor.
size_t record_meaning_size(const struct wait *wait);

// Appends the wait. Call it again when more is known of it.
void record_put_wait(struct record_writer *writer, uint32_t id);

// Appends the set of labels.
void record_put_labels(struct record_writer *writer, uint32_t id);

// Appends the module under that number. `record` is empty, and used to build it.
void record_put_module(struct protobuf *to, struct protobuf *record, uint32_t id,
                       const struct module *module, bool is_program);

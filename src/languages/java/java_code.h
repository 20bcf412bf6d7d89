// SPDX-License-Identifier: MIT
// java_code: what is known of the process's Java code: its blobs, and the places in them that
// stacks have shown.
//
// HotSpot compiles methods again and again, and reuses the memory of code that it has discarded. So
// each walk checks with one read all blobs that the stack may lead through (java_code_begin): each
// compilation has a number of its own (java_blob_is_same).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash.h"
#include "java_blob.h"
#include "java_heaps.h"
#include "java_layout.h"

struct snapshot;

struct java_known_blob {
	uint64_t block;
	struct java_blob blob;
	uint32_t made;    // changes when another blob takes its place
	uint32_t checked; // at which walk it was there
	uint32_t asked;   // at which walk it was checked, or will be
};

enum { JAVA_NO_BLOB = UINT32_MAX };

// An address in a blob. Once it is named: the locations of the frames to show, the innermost first.
struct java_site {
	uint64_t key;          // pc * 2 + is_return
	uint32_t blob, made;   // the blob's number; `made` as it was then
	uint32_t first, count; // among java_code.locations
	bool is_named;
};

// Zero is empty, but for what is borrowed.
struct java_code {
	const struct java_source *source; // borrowed
	const struct java_layout *layout; // borrowed
	const struct java_heaps *heaps;   // borrowed
	uint32_t walk;                    // its number
	bool is_full;                     // all is forgotten before the next walk
	struct java_known_blob *blobs;
	size_t n_blobs, blobs_capacity;
	struct hash_index blob_index;
	struct java_site *sites;
	size_t n_sites, sites_capacity;
	struct hash_index site_index;
	uint32_t *locations;
	size_t n_locations, locations_capacity;
	uint8_t *bytes; // of blobs that are checked
};

void java_code_deinit(struct java_code *code);

// Begins a walk of the stack: checks all blobs that it may lead through.
void java_code_begin(struct java_code *code, const struct snapshot *snapshot);

// Returns the site for an address of the stack whose walk has begun, until the next one is asked
// for; NULL: there is no blob.
struct java_site *java_code_find(struct java_code *code, uint64_t pc, bool is_return);

// Returns the site's blob, until the next site is asked for.
static inline const struct java_blob *java_code_blob(const struct java_code *code,
                                                     const struct java_site *site)
{
	return &code->blobs[site->blob].blob;
}

// True if the site's code is still in the process: what was read of it meanwhile is right.
bool java_code_holds(const struct java_code *code, const struct java_site *site);

// Adds a location to the site, which is the last one that was found or named.
void java_code_add_location(struct java_code *code, struct java_site *site, uint32_t location);

// Forgets the names of all sites.
void java_code_forget_names(struct java_code *code);

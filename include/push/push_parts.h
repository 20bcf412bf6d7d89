// SPDX-License-Identifier: MIT
// push_parts: splits a window into requests, none larger than the server takes.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "push_labels.h"

struct destination;
struct error;

enum { PUSH_MAX_BYTES = 64 << 20 }; // of a window, unpacked

struct push_part {
	uint8_t *body; // malloc
	size_t size;
	size_t raw_size;  // of the profile in it, before compression
	uint64_t samples; // in it
	char *series;     // its labels as text, for --dry-run
};

struct push_parts {
	struct push_part *items;
	size_t count, capacity;
	uint64_t samples;        // in the whole window
	size_t raw_size;         // of the file, before compression
	uint64_t too_large;      // samples left out, as one alone does not fit into a request
	int64_t time_ns, end_ns; // CLOCK_REALTIME
};

// How a file is to be sent; borrowed.
struct push_wishes {
	const struct destination *destination;
	const struct push_labels *labels; // take precedence over those that the file names
	const char *const *keys;          // of samples' labels that are sent, NULL-terminated
};

// Makes the requests for the profile; on success the caller owns *ret. The same file is split in
// the same way each time.
struct error *push_parts_make(const char *name, const void *bytes, size_t size,
                              const struct push_wishes *wishes, struct push_parts *ret);
void push_parts_deinit(struct push_parts *parts);

// Begins a comment of a profile that names one of its labels: "label KEY=VALUE".
#define PUSH_LABEL_COMMENT "label "

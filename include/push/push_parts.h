// SPDX-License-Identifier: MIT
// push_parts: a window as the requests that carry it, each within what the server takes.
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
	uint64_t samples; // counted
	char *series;     // its labels, for --dry-run
};

struct push_parts {
	struct push_part *items;
	size_t count, capacity;
	uint64_t samples;        // of the whole window
	size_t raw_size;         // of the file, before compression
	uint64_t too_large;      // of them, in samples that do not fit into a request alone
	int64_t time_ns, end_ns; // CLOCK_REALTIME
};

// What is asked for beside the file.
struct push_wishes {
	const struct destination *destination;
	const struct push_labels *labels; // go before those that the file names
	const char *const *keys;          // of the labels of samples that are sent, NULL-terminated
};

// The requests for the profile; on success the caller owns *ret. The same file is split in the same
// way each time.
struct error *push_parts_make(const char *name, const void *bytes, size_t size,
                              const struct push_wishes *wishes, struct push_parts *ret);
void push_parts_deinit(struct push_parts *parts);

// A comment of a profile by which it says one of its labels, "label KEY=VALUE".
#define PUSH_LABEL_COMMENT "label "

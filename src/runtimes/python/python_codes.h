// SPDX-License-Identifier: MIT
// python_codes: the functions that code objects stand for.
//
// A code object may be freed, and another one come to its address, while sampling goes on. So what
// was read of one holds only while its header, as it was read when the thread stood still, says the
// same: from 3.12 on it has a number that no other has; before, the addresses of what it consists
// of, together with the hashes of its name and its file.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash.h"
#include "python_layout.h"

struct frame_names;
struct python;

enum { PYTHON_KEY_WORDS = 12 };

// What tells a code object from all that were ever at its address.
struct python_code_seen {
	uint64_t address;
	bool is_read;
	uint64_t key[PYTHON_KEY_WORDS];
};

struct python_code {
	struct python_code_seen seen;
	uint32_t function; // in frame_names
	uint32_t first_line;
	int32_t traceable; // the first instruction that counts, in bytes; 0: not known
	uint64_t start;    // of its instructions
	uint8_t *lines;    // its line table
	uint32_t lines_bytes;
};

struct python_codes {
	struct python_code *items;
	size_t n, capacity;
	struct hash_index index;   // by address
	struct frame_names *names; // borrowed
};

void python_codes_deinit(struct python_codes *codes);

// Reads the headers of n code objects whose addresses are set, and what else their keys need. With
// a thread that stands still; async-signal-safe.
void python_codes_look(const struct python *python, int tid, struct python_code_seen *codes,
                       size_t n);

// The text of a string, of which `size` bytes (128 or more) are at hand, as far as it goes; NULL:
// it is none. The caller frees.
char *python_codes_text(const struct python *python, const uint8_t *object, size_t size);

// The code object that was seen; what is not known of it is read now. NULL: it is no more, or no
// code object. Valid until the next call.
const struct python_code *python_codes_get(struct python *python, int tid,
                                           const struct python_code_seen *seen);

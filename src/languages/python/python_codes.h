// SPDX-License-Identifier: MIT
// python_codes: finds the functions that code objects stand for.
//
// While sampling goes on, a code object may be freed, and another one be made at its address. So
// what was read of a code object is used only as long as its header, read while the thread stood
// still, has the same key: from 3.12 on a number that no other code object has; before, the
// addresses of its parts together with the hashes of its name and its file.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash.h"

struct frame_names;
struct python;
struct python_frame;
struct python_pieces;

enum { PYTHON_KEY_WORDS = 12 };

// What distinguishes a code object from all others that were ever at its address.
struct python_code_seen {
	uint64_t address;
	bool is_read;
	uint64_t key[PYTHON_KEY_WORDS];
};

struct python_code {
	struct python_code_seen seen;
	uint32_t function; // in frame_names
	uint32_t first_line;
	int64_t traceable; // where the first instruction that counts is, in bytes; 0: not known
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

// Reads the headers of n code objects, whose addresses are set, and what else their keys need. The
// thread stands still. Async-signal-safe.
void python_codes_look(const struct python *python, struct python_pieces *pieces,
                       struct python_code_seen *codes, size_t n);
void python_codes_look_at_one(const struct python *python, int tid, struct python_code_seen *code);

// Returns how wide a string's characters are, and whether it is ASCII, by its state; 0: it is not a
// string whose text follows its header.
unsigned int python_codes_string_kind(uint32_t state, bool *ret_ascii);

// Returns the text of a string object, as far as it lies in its first `size` (128 or more) bytes,
// which are given; NULL: it is not a string. The caller frees.
char *python_codes_text(const struct python *python, const uint8_t *object, size_t size);

// Returns the code object that was seen, after reading what is not known of it yet. NULL: it is
// gone, or is not a code object. Valid until the next call.
const struct python_code *python_codes_get(struct python *python, int tid,
                                           const struct python_code_seen *seen);

// Finds where the frame is in its code, in bytes. A free-threaded interpreter has copies of it,
// which a process that has ended or changed tells no more: false.
bool python_codes_find_place(const struct python *python, int tid, const struct python_frame *frame,
                             const struct python_code *code, int64_t *ret);

// Returns the line of that place; the function's first one, if its table does not tell.
uint32_t python_codes_line(const struct python *python, const struct python_code *code, int64_t at);

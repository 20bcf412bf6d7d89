// SPDX-License-Identifier: MIT
// code_bytes: tells whether code that no file holds is still what it was when a rule was made from
// it. A compiler may write other code in its place, and nothing says so.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct address_space;

enum {
	// A rule is made from the code around its address, and from that on the ways from there to
	// a return. Other code differs soon: what is further on is not compared.
	CODE_BYTES_RANGES = 8,
	CODE_BYTES_MAX = 512,
};

// Where the code lay, and the hash of its bytes.
struct code_bytes {
	uint64_t hash;
	size_t n;
	struct {
		uint64_t address;
		size_t size;
	} ranges[CODE_BYTES_RANGES];
};

// Takes notes while a rule is made. Zeroed: begins.
struct code_notes {
	struct code_bytes places;
	uint8_t bytes[CODE_BYTES_MAX];
	size_t size;
};

// Notes an instruction that the rule is made from. Those that were noted before, and those for
// which there is no room, are left out.
void code_notes_add(struct code_notes *notes, uint64_t address, const void *bytes, size_t size);

// Returns what is to be kept of the notes.
struct code_bytes code_notes_finish(const struct code_notes *notes);

// Blocks of a process's code as they are at one update of its address space: many rules lie in few
// blocks.
struct code_blocks;

struct code_blocks *code_blocks_create(void);
void code_blocks_destroy(struct code_blocks *blocks);

// True if the process has the same bytes there at the address space's last update, or if they
// cannot be read: they are not in memory, and so not written lately, and are not fetched for this;
// or the process has ended. What it writes between that and now may be seen, or not.
bool code_bytes_are_valid(const struct code_bytes *bytes, struct code_blocks *blocks,
                          const struct address_space *space);

// SPDX-License-Identifier: MIT
// maps: reads and parses /proc/PID/maps.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapping {
	uint64_t start, end;
	uint64_t file_offset;
	uint64_t device; // as in makedev(3)
	uint64_t inode;  // 0: no file
	uint32_t path;   // offset in maps.text, terminated; "" for anonymous memory
	bool readable, executable, shared;
};

struct maps {
	struct mapping *items; // sorted, disjoint
	size_t count, capacity;
	char *text; // the file, cut into strings
	size_t text_capacity;
	uint64_t text_hash; // of the file as it was read
	char *read;         // what was read last, if that is not the text
	size_t read_capacity;
	volatile bool
	    changing; // for signal handlers: while it is set, they must not look at the rest
};

// Replaces what *maps holds (zeroed at first; its memory is reused) by the maps that thread `tid`
// of process `pid` sees. False if they are the same as before. Maps that cannot be read, and those
// of a zombie, are empty.
bool maps_read(struct maps *maps, int pid, int tid);

// Does the same from a text of `size` bytes; leaves out malformed lines, and those out of order.
void maps_parse(struct maps *maps, const char *text, size_t size);

void maps_deinit(struct maps *maps);

// Returns the mapping that holds the address, or else the next one above it; NULL: none.
const struct mapping *maps_find_from(const struct maps *maps, uint64_t address);

// Returns the mapping that holds the address; NULL: none.
const struct mapping *maps_find(const struct maps *maps, uint64_t address);

// Returns the mapping's path, owned by maps.
const char *maps_path(const struct maps *maps, const struct mapping *mapping);

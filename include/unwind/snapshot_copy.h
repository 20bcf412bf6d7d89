// SPDX-License-Identifier: MIT
// snapshot_copy: a copy of a thread's stack that is being made, to which languages add what their
// steps need. All of it is async-signal-safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arch;
struct maps;
struct snapshot;
struct snapshot_buffer;
struct snapshot_hint;

enum { SNAPSHOT_COPY_MAX_KNOWN = 4 };

// Where a language's stack is.
struct known_stack {
	uint64_t low, high;
	bool is_exact; // it ends there, and not a little further up
};

struct snapshot_copy {
	int tid;
	const struct arch *arch;
	const struct maps *maps;
	const struct snapshot_hint *hint;
	struct snapshot_buffer *buffer;
	struct snapshot *snapshot; // with what was copied before
	size_t language;           // that is asked, by position
	bool has_many_bases;       // other threads of the process begin in other ways
	size_t n_known;
	struct known_stack known[SNAPSHOT_COPY_MAX_KNOWN];
};

// Returns how many more stacks can be copied.
size_t snapshot_copy_room(const struct snapshot_copy *copy);

// True if the copy has the address already.
bool snapshot_copy_has(const struct snapshot_copy *copy, uint64_t address);

// Makes these bytes the language's note. It has none if there is no room.
void snapshot_copy_note(const struct snapshot_copy *copy, const void *bytes, size_t size);

// Adds a stack that is known. More than SNAPSHOT_COPY_MAX_KNOWN are left out.
void snapshot_copy_know(struct snapshot_copy *copy, const struct known_stack *stack);

// Copies a stack from its stack pointer on, as far as it seems to reach.
bool snapshot_copy_stack(const struct snapshot_copy *copy, uint64_t sp);

// Copies `size` bytes from there on. False if there is no room, or none of them can be read.
bool snapshot_copy_bytes(const struct snapshot_copy *copy, uint64_t start, size_t size);

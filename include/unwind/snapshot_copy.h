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

struct snapshot_copy {
	int tid;
	const struct arch *arch;
	const struct maps *maps;
	const struct snapshot_hint *hint;
	struct snapshot_buffer *buffer;
	struct snapshot *snapshot; // with what was copied before
	size_t language;           // that is asked, by position
};

// Returns how many more stacks can be copied.
size_t snapshot_copy_room(const struct snapshot_copy *copy);

// True if the copy has the address already.
bool snapshot_copy_has(const struct snapshot_copy *copy, uint64_t address);

// Makes these bytes the language's note. It has none if there is no room.
void snapshot_copy_note(const struct snapshot_copy *copy, const void *bytes, size_t size);

// Copies `size` bytes from there on. False if there is no room, or none of them can be read.
bool snapshot_copy_bytes(const struct snapshot_copy *copy, uint64_t start, size_t size);

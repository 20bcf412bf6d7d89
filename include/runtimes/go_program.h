// SPDX-License-Identifier: MIT
// go_program: a running Go program, as far as its goroutines need it: where the runtime keeps the
// list of them, how their structures look, and its words for what they wait for.
//
// All of it is the target's. Found by symbols, or in a stripped program by what the data look like;
// believed only where it fits together.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "go_offsets.h"

struct address_space;
struct module;
struct resident;

enum {
	GO_MAX_REASONS = 64,
	GO_REASON_BYTES = 64,
	GO_VERSION_BYTES = 32,
};

// Whose memory is read: through that live thread, where it is in memory. Both borrowed.
struct go_memory {
	int tid;
	struct resident *resident;
};

struct go_program {
	struct module *module; // the file that holds it, borrowed; NULL: there is none
	uint64_t bias;         // address in the process - address in the file
	int minor;             // of Go 1.`minor`
	char version[GO_VERSION_BYTES];
	struct go_offsets offsets;
	size_t g_bytes;        // of struct g, that hold all of the fields
	uint64_t list_length;  // where runtime.allglen is, or the same in runtime.allgs
	uint64_t list_pointer; // and runtime.allgptr
	char (
	    *reasons)[GO_REASON_BYTES]; // runtime.waitReasonStrings, GO_MAX_REASONS of them; owned
	const char *refused;            // why its goroutines cannot be read; NULL: they can
};

// Looks for Go in the process: in its main executable, and in what has shown Go's code already.
// False: there is none.
bool go_program_find(struct address_space *space, const struct go_memory *memory,
                     struct go_program *ret);
void go_program_deinit(struct go_program *program);

// True if the compiler has made the function at the address, around a call with arguments
// (main.main.gowrap1; main.main.func1 up to Go 1.21).
bool go_program_is_wrapper(const struct go_program *program, uint64_t pc);

// The function at an address of the process, owned by the module; NULL: not known. *ret_entry,
// if it is not NULL, is where it begins.
const char *go_program_function(const struct go_program *program, uint64_t pc, uint64_t *ret_entry);

// Fields of struct g, in a copy of its first g_bytes.
static inline uint64_t go_word(const uint8_t *bytes, uint16_t offset)
{
	uint64_t value = 0;

	if (offset != GO_NO_FIELD)
		__builtin_memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

// True if the bytes, read from that address, can be a struct g.
bool go_program_is_g(const struct go_program *program, const uint8_t *bytes, uint64_t address);

bool go_memory_read(const struct go_memory *memory, uint64_t address, void *bytes, size_t size);

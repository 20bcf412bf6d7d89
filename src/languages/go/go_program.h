// SPDX-License-Identifier: MIT
// go_program: what reading goroutines needs to know of a running Go program: where the runtime
// keeps their list, how their structures look, and the runtime's words for what they wait for.
//
// All of it comes from the target. It is found by symbols, or in a stripped program by what the
// data look like, and is believed only if it fits together.
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

// Whose memory is read: that of the live thread's process, and only pages that are in memory.
// `resident` is borrowed.
struct go_memory {
	int tid;
	struct resident *resident;
};

struct go_program {
	struct module *module; // the file with Go's runtime, borrowed; NULL: there is none
	uint64_t bias;         // address in the process - address in the file
	int minor;             // of Go 1.`minor`; -1: not known
	int guessed_minor;     // its structures are read as those of Go 1.`guessed_minor`, as
	                       // `minor` is not known to this profiler; 0: `minor` is known
	int wrapper;           // FuncID of the functions that wrap calls; -1: not known
	char version[GO_VERSION_BYTES];
	struct go_offsets offsets;
	size_t g_bytes;        // how many bytes of struct g hold all of the fields
	uint64_t list_length;  // the address of runtime.allglen, or of the length in runtime.allgs
	uint64_t list_pointer; // the address of runtime.allgptr, or of the pointer there
	// GO_MAX_REASONS of runtime.waitReasonStrings; owned.
	char (*reasons)[GO_REASON_BYTES];
	const char *refused;        // why its goroutines cannot be read; NULL: they can
	size_t n_others;            // further files whose own runtime has goroutines
	const struct module *other; // the first of them, borrowed
};

// Returns how many mappings may be of files with Go's code: the main executable, and those in which
// stacks have shown it.
size_t go_program_count_files(const struct address_space *space);

// Looks for Go's runtime in these files. False if there is none.
bool go_program_find(struct address_space *space, const struct go_memory *memory,
                     struct go_program *ret);
void go_program_deinit(struct go_program *program);

// True if the compiler made the function at the address to wrap a call with arguments
// (main.main.gowrap1; main.main.func1 up to Go 1.21).
bool go_program_is_wrapper(const struct go_program *program, uint64_t pc);

// Returns the name of the function at an address of the process, owned by the module; NULL: not
// known. Sets *ret_entry, if that is not NULL, to where the function begins.
const char *go_program_function(const struct go_program *program, uint64_t pc, uint64_t *ret_entry);

// Reads a field of struct g from a copy of its first g_bytes; 0 for GO_NO_FIELD.
static inline uint64_t go_word(const uint8_t *bytes, uint16_t offset)
{
	uint64_t value = 0;

	if (offset != GO_NO_FIELD)
		__builtin_memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

// True if the bytes, read from that address, can be a struct g.
bool go_program_is_g(const struct go_program *program, const uint8_t *bytes, uint64_t address);

// Reads all of the bytes. False if some are not in memory, or cannot be read.
bool go_memory_read(const struct go_memory *memory, uint64_t address, void *bytes, size_t size);

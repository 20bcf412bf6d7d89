// SPDX-License-Identifier: MIT
// java_blob: what HotSpot says of a piece of its code (CodeBlob): where its frames end, and for a
// compiled method (nmethod), the tables that tell which calls are inlined at each place (PcDesc,
// ScopeDesc).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "java_layout.h"
#include "java_memory.h"

enum { JAVA_BLOB_NAME_BYTES = 64 };

enum java_blob_kind {
	JAVA_COMPILED, // a compiled method
	JAVA_NATIVE,   // calls a native method
	JAVA_INTERPRETER,
	JAVA_STUB,      // with frames of a known size
	JAVA_FRAMELESS, // leaves the stack as it was when it goes on to a method
	JAVA_OTHER,     // routines written by hand
};

struct java_blob {
	uint64_t address, begin, end; // of its code
	enum java_blob_kind kind;
	char name[JAVA_BLOB_NAME_BYTES]; // HotSpot's, of stubs
	uint32_t frame_bytes;            // with the return address; 0: not known, or none
	uint32_t complete;               // before this offset, a frame is not made yet
	// Of a compiled method:
	uint32_t compile_id; // unique
	uint64_t method;
	uint64_t deopt, deopt_mh; // return addresses to these stand for the one in the frame
	uint32_t orig_pc;         // at SP + orig_pc; 0: not known
	uint64_t pcs, pcs_end, scopes, scopes_end, metadata, metadata_end; // addresses
};

// An inlined call, or the method that was compiled.
struct java_scope {
	uint64_t method; // the address of the Method
	int32_t bci;     // of the bytecode; -1: before the first one
};

enum { JAVA_MAX_SCOPES = 128 }; // inlined in each other

// Reads the blob in the block (java_heaps_find). False if none is there.
bool java_blob_read(const struct java_source *source, const struct java_layout *layout,
                    uint64_t block, struct java_blob *ret);

// Returns how many bytes from the blob's address - layout->block_bytes on tell whether it is still
// the same (java_blob_is_same).
size_t java_blob_check_bytes(const struct java_layout *layout, const struct java_blob *blob);
bool java_blob_is_same(const struct java_layout *layout, const struct java_blob *blob,
                       const uint8_t *bytes);

// Finds which calls are inlined at the address, the innermost first; returns how many, up to
// JAVA_MAX_SCOPES; 0: not known. For a return address this is exact; for any other address it is
// what holds at the next place that the compiler has described.
size_t java_blob_scopes(const struct java_memory *memory, const struct java_layout *layout,
                        const struct java_blob *blob, uint64_t pc, bool is_return,
                        struct java_scope *ret);

// True if the compiler has noted a call that returns to the address.
bool java_blob_has_return(const struct java_memory *memory, const struct java_layout *layout,
                          const struct java_blob *blob, uint64_t pc);

// SPDX-License-Identifier: MIT
// java_layout: the offsets and addresses of HotSpot's structures.
//
// HotSpot describes itself for debuggers: libjvm.so exports tables of its fields, types and
// constants (vmStructs.hpp in OpenJDK's sources: gHotSpotVMStructs and others) together with the
// tables' own layout. So the same code fits every build. What the tables leave out is the same
// since JDK 9; it is stated where it is used.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "java_memory.h"

enum {
	JAVA_NO_FIELD = -1,
	JAVA_MIN_MAJOR = 9,        // older ones keep their code differently
	JAVA_MAX_STRUCTURE = 1024, // bytes of a structure that is read at once
};

// Offsets in bytes; JAVA_NO_FIELD: this JDK has no such field.
struct java_layout {
	int32_t major; // of the JDK: 17, ...

	// The code cache. `heaps` and those below are addresses in the process.
	int32_t array_length, array_data;
	int32_t heap_memory, heap_segments, heap_log2;
	int32_t space_low, space_limit;
	int32_t block_bytes; // sizeof(HeapBlock)
	int32_t block_used;  // HeapBlock::Header, at the block's beginning
	uint64_t heaps, call_stub_return, version, perf_start, perf_top;

	// CodeBlob. Up to JDK 22 the code's bounds are pointers, later offsets.
	int32_t blob_bytes;
	int32_t blob_name, blob_frame_size, blob_complete;
	int32_t code_begin, code_end, code_offset, data_offset;
	int32_t mutable_data, mutable_size, relocation_size;

	// nmethod
	int32_t nmethod_bytes;
	int32_t method, compile_id, orig_pc, deopt, deopt_mh;
	int32_t scopes_begin, scopes_offset, pcs_offset, dependencies_offset, metadata_offset;
	int32_t immutable_data, immutable_size;
	int32_t pc_bytes; // sizeof(PcDesc)

	// Method, ConstMethod, ConstantPool, Klass, Symbol
	int32_t const_method, method_flags;
	int32_t const_bytes, const_pool, const_size, const_flags, const_code_size, const_name;
	int32_t pool_bytes, pool_holder, pool_file, klass_file;
	int32_t klass_name;
	int32_t symbol_length, symbol_body;

	// What follows tells of threads, locks and objects; a JDK may lack some of it.

	// JavaThread and OSThread. Up to JDK 11 threads are a chain, later an array; from 24 on a
	// monitor's owner is known by a number.
	uint64_t thread_list, first_thread;
	int32_t list_length, list_items, next_thread;
	int32_t os_thread, os_thread_id, stack_base, stack_size;
	int32_t thread_object, pending_monitor, waiting_monitor, owner_id;
	int32_t lock_stack, lock_stack_top, lock_stack_first; // from 21 on

	// ObjectMonitor. `handle` is known from 16 on: from then on, references to objects are
	// addresses of their addresses.
	int32_t monitor_owner, monitor_object, handle;

	// Objects, and the collector.
	uint64_t heap, oop_base, oop_shift, class_base, class_shift;
	int32_t heap_reserved, heap_is_active, heap_collections, region_start, region_words;
	int32_t class_supers, class_fields, class_n_fields, class_stream, class_constants;
	int32_t words_data, bytes_data; // of Array<u2>, Array<u1>
	// Addresses of options, each a byte; 0: this JDK does not have it.
	uint64_t flags, n_flags;
	int32_t flag_bytes, flag_name, flag_value;
	uint64_t has_narrow_oops, has_narrow_classes, has_compact_heads;
	uint64_t uses_serial, uses_parallel, uses_g1;
};

// Where the tables are found.
struct java_source {
	struct java_memory memory;
	// Returns the address in the process of an exported variable; 0: there is none.
	uint64_t (*find_variable)(void *context, const char *name);
	// Returns the constant string at an address of the process, which ends with a NUL; NULL:
	// there is none.
	const char *(*find_string)(void *context, uint64_t address);
	void *context;
};

enum java_layout_result {
	JAVA_LAYOUT_KNOWN,
	JAVA_LAYOUT_EARLY,   // the tables, or the version, cannot be read yet
	JAVA_LAYOUT_UNKNOWN, // a needed field is missing; `major` is set if it is known
};

// True if the JDK tells what its threads wait for.
bool java_layout_has_threads(const struct java_layout *layout);

enum java_layout_result java_layout_read(const struct java_source *source, struct java_layout *ret);

// Reads a field of a structure that was copied to `bytes`; 0: there is no such field.
static inline uint64_t java_word(const uint8_t *bytes, int32_t offset)
{
	uint64_t value = 0;

	if (offset >= 0)
		__builtin_memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static inline uint32_t java_u32(const uint8_t *bytes, int32_t offset)
{
	uint32_t value = 0;

	if (offset >= 0)
		__builtin_memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static inline uint16_t java_u16(const uint8_t *bytes, int32_t offset)
{
	uint16_t value = 0;

	if (offset >= 0)
		__builtin_memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

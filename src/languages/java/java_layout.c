// SPDX-License-Identifier: MIT
#include "java_layout.h"

#include <stddef.h>
#include <string.h>

#include "memory.h"

enum {
	MAX_ENTRIES = 1 << 13,      // of one table; it has about 800
	MAX_STRIDE = 128,           // bytes of an entry; it has up to 48
	CHUNK_ENTRIES = 64,         // that are read at once
	MAX_THREAD_BYTES = 1 << 14, // of a JavaThread; it has about 2000
	MAX_FLAGS = 1 << 13,        // there are about 1500
	MAX_FLAG_BYTES = 64,        // of one; it has up to 40
	WORD = 8,
};

// A field, or with field NULL the size of a type.
struct wanted {
	const char *type, *field;
	size_t member;  // of struct java_layout
	bool is_static; // the member is a 64-bit address
};

#define FIELD(type, field, member)                                                                 \
	{                                                                                          \
		type, field, offsetof(struct java_layout, member), false                           \
	}
#define STATIC(type, field, member)                                                                \
	{                                                                                          \
		type, field, offsetof(struct java_layout, member), true                            \
	}
#define SIZE(type, member) FIELD(type, NULL, member)

// Where a field has moved or was renamed, each of its places has a row; a JDK has one of them.
static const struct wanted wanted[] = {
    STATIC("CodeCache", "_heaps", heaps),
    STATIC("StubRoutines", "_call_stub_return_address", call_stub_return),
    STATIC("Abstract_VM_Version", "_vm_major_version", version),
    STATIC("PerfMemory", "_start", perf_start),
    STATIC("PerfMemory", "_top", perf_top),
    FIELD("GrowableArrayBase", "_len", array_length),
    FIELD("GenericGrowableArray", "_len", array_length), // up to 15
    FIELD("GrowableArray<int>", "_data", array_data),
    FIELD("CodeHeap", "_memory", heap_memory),
    FIELD("CodeHeap", "_segmap", heap_segments),
    FIELD("CodeHeap", "_log2_segment_size", heap_log2),
    FIELD("VirtualSpace", "_low", space_low),
    FIELD("VirtualSpace", "_high_boundary", space_limit),
    SIZE("HeapBlock", block_bytes),
    FIELD("HeapBlock::Header", "_used", block_used),
    SIZE("CodeBlob", blob_bytes),
    FIELD("CodeBlob", "_name", blob_name),
    FIELD("CodeBlob", "_frame_size", blob_frame_size),
    FIELD("CodeBlob", "_frame_complete_offset", blob_complete),
    FIELD("CodeBlob", "_code_begin", code_begin), // up to 22
    FIELD("CodeBlob", "_code_end", code_end),
    FIELD("CodeBlob", "_code_offset", code_offset), // from 23 on
    FIELD("CodeBlob", "_data_offset", data_offset),
    FIELD("CodeBlob", "_mutable_data", mutable_data), // from 25 on
    FIELD("CodeBlob", "_mutable_data_size", mutable_size),
    FIELD("CodeBlob", "_relocation_size", relocation_size),
    SIZE("nmethod", nmethod_bytes),
    FIELD("CompiledMethod", "_method", method), // up to 22
    FIELD("nmethod", "_method", method),
    FIELD("nmethod", "_compile_id", compile_id),
    FIELD("nmethod", "_orig_pc_offset", orig_pc),
    FIELD("CompiledMethod", "_deopt_handler_begin", deopt), // up to 22
    FIELD("CompiledMethod", "_deopt_mh_handler_begin", deopt_mh),
    FIELD("nmethod", "_deopt_handler_offset", deopt),
    FIELD("nmethod", "_deopt_mh_handler_offset", deopt_mh),
    FIELD("nmethod", "_deopt_handler_entry_offset", deopt),      // from 26 on
    FIELD("CompiledMethod", "_scopes_data_begin", scopes_begin), // up to 22
    FIELD("nmethod", "_scopes_data_offset", scopes_offset),
    FIELD("nmethod", "_scopes_pcs_offset", pcs_offset),
    FIELD("nmethod", "_dependencies_offset", dependencies_offset),
    FIELD("nmethod", "_metadata_offset", metadata_offset),
    FIELD("nmethod", "_immutable_data", immutable_data), // from 23 on
    FIELD("nmethod", "_immutable_data_size", immutable_size),
    SIZE("PcDesc", pc_bytes),
    FIELD("Method", "_constMethod", const_method),
    FIELD("Method", "_flags", method_flags), // up to 20
    SIZE("ConstMethod", const_bytes),
    FIELD("ConstMethod", "_constants", const_pool),
    FIELD("ConstMethod", "_constMethod_size", const_size),
    FIELD("ConstMethod", "_flags", const_flags),
    FIELD("ConstMethod", "_flags._flags", const_flags), // from 21 on
    FIELD("ConstMethod", "_code_size", const_code_size),
    FIELD("ConstMethod", "_name_index", const_name),
    SIZE("ConstantPool", pool_bytes),
    FIELD("ConstantPool", "_pool_holder", pool_holder),
    FIELD("ConstantPool", "_source_file_name_index", pool_file), // from 15 on
    FIELD("InstanceKlass", "_source_file_name_index", klass_file),
    FIELD("Klass", "_name", klass_name),
    FIELD("Symbol", "_length", symbol_length),
    FIELD("Symbol", "_body", symbol_body),
    FIELD("Symbol", "_body[0]", symbol_body),
    STATIC("ThreadsSMRSupport", "_java_thread_list", thread_list),
    STATIC("Threads", "_thread_list", first_thread), // up to 11
    FIELD("ThreadsList", "_length", list_length),
    FIELD("ThreadsList", "_threads", list_items),
    FIELD("JavaThread", "_next", next_thread),
    FIELD("JavaThread", "_osthread", os_thread),
    FIELD("Thread", "_osthread", os_thread), // from 25 on
    FIELD("OSThread", "_thread_id", os_thread_id),
    FIELD("JavaThread", "_stack_base", stack_base),
    FIELD("JavaThread", "_stack_size", stack_size),
    FIELD("JavaThread", "_threadObj", thread_object),
    FIELD("JavaThread", "_current_pending_monitor", pending_monitor),
    FIELD("JavaThread", "_current_waiting_monitor", waiting_monitor),
    FIELD("Thread", "_current_pending_monitor", pending_monitor), // up to 11
    FIELD("Thread", "_current_waiting_monitor", waiting_monitor),
    FIELD("JavaThread", "_monitor_owner_id", owner_id), // from 24 on
    FIELD("JavaThread", "_lock_stack", lock_stack),
    FIELD("LockStack", "_top", lock_stack_top),
    FIELD("LockStack", "_base[0]", lock_stack_first),
    FIELD("ObjectMonitor", "_owner", monitor_owner),
    FIELD("ObjectMonitor", "_object", monitor_object),
    FIELD("OopHandle", "_obj", handle),
    STATIC("Universe", "_collectedHeap", heap),
    STATIC("Universe", "_narrow_oop._base", oop_base), // up to 12
    STATIC("Universe", "_narrow_oop._shift", oop_shift),
    STATIC("CompressedOops", "_narrow_oop._base", oop_base),
    STATIC("CompressedOops", "_narrow_oop._shift", oop_shift),
    STATIC("CompressedOops", "_base", oop_base), // from 23 on
    STATIC("CompressedOops", "_shift", oop_shift),
    STATIC("Universe", "_narrow_klass._base", class_base), // up to 12
    STATIC("Universe", "_narrow_klass._shift", class_shift),
    STATIC("CompressedKlassPointers", "_narrow_klass._base", class_base),
    STATIC("CompressedKlassPointers", "_narrow_klass._shift", class_shift),
    STATIC("CompressedKlassPointers", "_base", class_base), // from 23 on
    STATIC("CompressedKlassPointers", "_shift", class_shift),
    FIELD("CollectedHeap", "_reserved", heap_reserved),
    FIELD("CollectedHeap", "_is_gc_active", heap_is_active),
    FIELD("CollectedHeap", "_is_stw_gc_active", heap_is_active), // from 22 on
    FIELD("CollectedHeap", "_total_collections", heap_collections),
    FIELD("MemRegion", "_start", region_start),
    FIELD("MemRegion", "_word_size", region_words),
    FIELD("Klass", "_primary_supers[0]", class_supers),
    FIELD("InstanceKlass", "_fields", class_fields), // up to 20
    FIELD("InstanceKlass", "_java_fields_count", class_n_fields),
    FIELD("InstanceKlass", "_fieldinfo_stream", class_stream),
    FIELD("InstanceKlass", "_constants", class_constants),
    FIELD("Array<u2>", "_data", words_data),
    FIELD("Array<u1>", "_data", bytes_data),
    STATIC("JVMFlag", "flags", flags),
    STATIC("JVMFlag", "numFlags", n_flags),
    SIZE("JVMFlag", flag_bytes),
    FIELD("JVMFlag", "_name", flag_name),
    FIELD("JVMFlag", "_addr", flag_value),
};

// The options of the virtual machine that matter.
static const struct {
	const char *name;
	size_t member; // of struct java_layout
} wanted_flags[] = {
    {"UseCompressedOops", offsetof(struct java_layout, has_narrow_oops)},
    {"UseCompressedClassPointers", offsetof(struct java_layout, has_narrow_classes)},
    {"UseCompactObjectHeaders", offsetof(struct java_layout, has_compact_heads)},
    {"UseSerialGC", offsetof(struct java_layout, uses_serial)},
    {"UseParallelGC", offsetof(struct java_layout, uses_parallel)},
    {"UseG1GC", offsetof(struct java_layout, uses_g1)},
};

// A table, and where the parts of its entries are.
struct table {
	const struct java_source *source;
	uint64_t address;
	uint64_t stride, type, field, is_static, offset, value_address, size;
};

static uint64_t read_variable(const struct java_source *source, const char *prefix,
                              const char *name)
{
	char full[64];

	if (strlen(prefix) + strlen(name) >= sizeof(full))
		return 0;
	stpcpy(stpcpy(full, prefix), name);
	return java_read_word(&source->memory, source->find_variable(source->context, full));
}

static bool fits(const struct table *table)
{
	const uint64_t last = table->stride - sizeof(uint64_t);

	return table->address != 0 && table->stride >= sizeof(uint64_t) &&
	       table->stride <= MAX_STRIDE && table->type <= last && table->field <= last &&
	       table->is_static <= last && table->offset <= last && table->value_address <= last &&
	       table->size <= last;
}

static bool find_fields(const struct java_source *source, struct table *ret)
{
	static const char prefix[] = "gHotSpotVMStructEntry";

	*ret = (struct table){
	    .source = source,
	    .address = read_variable(source, "gHotSpotVMStructs", ""),
	    .stride = read_variable(source, prefix, "ArrayStride"),
	    .type = read_variable(source, prefix, "TypeNameOffset"),
	    .field = read_variable(source, prefix, "FieldNameOffset"),
	    .is_static = read_variable(source, prefix, "IsStaticOffset"),
	    .offset = read_variable(source, prefix, "OffsetOffset"),
	    .value_address = read_variable(source, prefix, "AddressOffset"),
	};
	return fits(ret) && ret->field != ret->type;
}

static bool find_types(const struct java_source *source, struct table *ret)
{
	static const char prefix[] = "gHotSpotVMTypeEntry";

	*ret = (struct table){
	    .source = source,
	    .address = read_variable(source, "gHotSpotVMTypes", ""),
	    .stride = read_variable(source, prefix, "ArrayStride"),
	    .type = read_variable(source, prefix, "TypeNameOffset"),
	    .size = read_variable(source, prefix, "SizeOffset"),
	};
	return fits(ret) && ret->size != ret->type;
}

static uint64_t word_at(const uint8_t *entry, uint64_t offset)
{
	return java_word(entry, (int32_t)offset);
}

// A thread's own structure is large; it is not read as a whole.
static uint64_t max_offset(const char *type)
{
	return strcmp(type, "JavaThread") == 0 ? MAX_THREAD_BYTES : JAVA_MAX_STRUCTURE;
}

// Sets the member that the entry describes, if there is one.
static void set_member(const struct table *table, const uint8_t *entry, const char *type,
                       const char *field, struct java_layout *layout)
{
	const bool is_static = field && java_u32(entry, (int32_t)table->is_static) != 0;
	const uint64_t value = word_at(entry, !field      ? table->size
	                                      : is_static ? table->value_address
	                                                  : table->offset);

	for (size_t i = 0; i < array_size(wanted); i++) {
		const struct wanted *row = &wanted[i];
		void *member = (uint8_t *)layout + row->member;
		if (!row->field != !field || strcmp(row->type, type) != 0 ||
		    (field && strcmp(row->field, field) != 0) || row->is_static != is_static)
			continue;
		if (is_static)
			*(uint64_t *)member = value;
		else
			*(int32_t *)member =
			    value < max_offset(type) ? (int32_t)value : JAVA_NO_FIELD;
	}
}

// Reads as many entries as are readable at once: the table may end near the end of a mapping.
static size_t read_chunk(const struct table *table, size_t first, uint8_t *bytes)
{
	const uint64_t at = table->address + first * table->stride;
	size_t n = CHUNK_ENTRIES;

	while (n > 0 && !java_read(&table->source->memory, at, bytes, n * table->stride))
		n /= 2;
	return n;
}

// False if the table does not end where it can be read.
static bool read_table(const struct table *table, bool has_fields, struct java_layout *layout)
{
	uint8_t bytes[CHUNK_ENTRIES * MAX_STRIDE];
	const struct java_source *source = table->source;

	for (size_t first = 0, n; first < MAX_ENTRIES; first += n) {
		n = read_chunk(table, first, bytes);
		if (n == 0)
			return false;
		for (size_t i = 0; i < n; i++) {
			const uint8_t *entry = bytes + i * table->stride;
			const uint64_t type_at = word_at(entry, table->type);
			const uint64_t field_at = has_fields ? word_at(entry, table->field) : 0;
			if (type_at == 0)
				return true;
			const char *type = source->find_string(source->context, type_at);
			const char *field =
			    field_at ? source->find_string(source->context, field_at) : NULL;
			if (type && (field || !has_fields))
				set_member(table, entry, type, field, layout);
		}
	}
	return false;
}

static void set_flag(const char *name, uint64_t value, struct java_layout *layout)
{
	for (size_t i = 0; i < array_size(wanted_flags); i++)
		if (strcmp(wanted_flags[i].name, name) == 0)
			*(uint64_t *)((uint8_t *)layout + wanted_flags[i].member) = value;
}

// Finds the options. Without them objects are not read.
static void read_flags(const struct java_source *source, struct java_layout *layout)
{
	const uint64_t start = java_read_word(&source->memory, layout->flags);
	const uint64_t n = java_read_word(&source->memory, layout->n_flags);
	const size_t size = (size_t)layout->flag_bytes;
	uint8_t bytes[MAX_FLAG_BYTES];

	if (layout->flag_bytes < 2 * WORD || size > sizeof(bytes) || n > MAX_FLAGS ||
	    layout->flag_name < 0 || (size_t)layout->flag_name > size - WORD ||
	    layout->flag_value < 0 || (size_t)layout->flag_value > size - WORD)
		return;
	for (uint64_t i = 0; i < n; i++) {
		if (!java_read(&source->memory, start + i * size, bytes, size))
			return;
		const uint64_t at = java_word(bytes, layout->flag_name);
		const char *name = at ? source->find_string(source->context, at) : NULL;
		if (name)
			set_flag(name, java_word(bytes, layout->flag_value), layout);
	}
}

static bool has_all(const int32_t *members, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (members[i] == JAVA_NO_FIELD)
			return false;
	return true;
}

// True if fields lie in their structures.
static bool has_room(const struct java_layout *layout)
{
	return layout->block_used < layout->block_bytes &&
	       layout->blob_frame_size < layout->blob_bytes &&
	       layout->compile_id < layout->nmethod_bytes &&
	       layout->blob_bytes <= layout->nmethod_bytes &&
	       layout->const_flags < layout->const_bytes;
}

// True if there is all that every version needs.
static bool has_needed(const struct java_layout *layout)
{
	const int32_t needed[] = {
	    layout->array_length,  layout->array_data,      layout->heap_memory,
	    layout->heap_segments, layout->heap_log2,       layout->space_low,
	    layout->space_limit,   layout->block_bytes,     layout->block_used,
	    layout->blob_bytes,    layout->blob_name,       layout->blob_frame_size,
	    layout->blob_complete, layout->nmethod_bytes,   layout->method,
	    layout->compile_id,    layout->orig_pc,         layout->deopt,
	    layout->pcs_offset,    layout->pc_bytes,        layout->const_method,
	    layout->const_bytes,   layout->const_pool,      layout->const_size,
	    layout->const_flags,   layout->const_code_size, layout->const_name,
	    layout->pool_bytes,    layout->pool_holder,     layout->klass_name,
	    layout->symbol_length, layout->symbol_body,
	};
	const int32_t old[] = {layout->code_begin, layout->code_end, layout->scopes_begin,
	                       layout->dependencies_offset, layout->metadata_offset};
	const int32_t new[] = {layout->code_offset, layout->data_offset, layout->scopes_offset,
	                       layout->immutable_size};
	const bool is_new = layout->immutable_data != JAVA_NO_FIELD;

	return layout->heaps != 0 && layout->call_stub_return != 0 &&
	       has_all(needed, array_size(needed)) && has_room(layout) &&
	       (is_new ? has_all(new, array_size(new)) : has_all(old, array_size(old)));
}

bool java_layout_has_threads(const struct java_layout *layout)
{
	const int32_t needed[] = {
	    layout->os_thread,       layout->os_thread_id,  layout->stack_base,
	    layout->stack_size,      layout->thread_object, layout->pending_monitor,
	    layout->waiting_monitor, layout->monitor_owner, layout->monitor_object};
	const int32_t array[] = {layout->list_length, layout->list_items};

	return has_all(needed, array_size(needed)) &&
	       (layout->thread_list ? has_all(array, array_size(array))
	                            : layout->first_thread && layout->next_thread >= 0);
}

enum java_layout_result java_layout_read(const struct java_source *source, struct java_layout *ret)
{
	struct table fields, types;

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < array_size(wanted); i++)
		if (!wanted[i].is_static)
			*(int32_t *)((uint8_t *)ret + wanted[i].member) = JAVA_NO_FIELD;
	if (!find_fields(source, &fields) || !find_types(source, &types) ||
	    !read_table(&fields, true, ret) || !read_table(&types, false, ret))
		return JAVA_LAYOUT_EARLY;
	if (ret->version == 0)
		return JAVA_LAYOUT_UNKNOWN;
	read_flags(source, ret);
	if (!java_read(&source->memory, ret->version, &ret->major, sizeof(ret->major)) ||
	    ret->major == 0)
		return JAVA_LAYOUT_EARLY;
	return ret->major >= JAVA_MIN_MAJOR && has_needed(ret) ? JAVA_LAYOUT_KNOWN
	                                                       : JAVA_LAYOUT_UNKNOWN;
}

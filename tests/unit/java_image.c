// SPDX-License-Identifier: MIT
#include "java_image.h"

#include <string.h>

enum {
	VARIABLES = 0x0,
	VARIABLE_BYTES = 64, // a value and the name
	N_VARIABLES = 16,
	FIELDS = 0x400,
	FIELD_BYTES = 48,
	TYPES = 0x1c00,
	TYPE_BYTES = 40,
	STRINGS = 0x2000,
	GLOBALS = 0x3c00,
	ARRAY = 0x4000,
	CODE_HEAP = 0x4100,
	SEGMENTS = 0x4400,
	SEGMENT_LOG2 = 7,
	N_SEGMENTS = 0x4000 >> SEGMENT_LOG2,
	TABLES = 0xe000, // of the compiled method, JDK 25
	METADATA = 0xe400,
	SYMBOLS = 0xa000,
	POOL = 0x9800,
	CLASS = 0x9c00,
	PERF = 0xd000,
	LEVEL_C2 = 4,
	THREADS_LIST = 0xa800,
	THREADS_ARRAY = 0xa820,
	FLAGS = 0xb000,
	FLAG_BYTES = 24,
	FLAG_VALUES = 0xb100,
	HANDLES = 0xb200,
	THREAD_ID = 88, // in a JavaThread: its number as an owner
	// Objects and their classes. A class's superclasses are at 16, its constants at 32, its
	// fields at 40, their number at 48.
	OBJECTS = 0xe500,
	OBJECTS_BYTES = 0x400,
	OWNER_OBJECT = 0xe500,
	STRING = 0xe540,
	STRING_BYTES = 0xe580,
	WAITER_OBJECT = 0xe700,
	CLASSES = 0xea00, // of Object, Thread, String, the synchronizer, byte[]
	CLASS_BYTES = 0x40,
	CONSTANTS = 0xec00,
	CONSTANTS_BYTES = 0x80,
	CLASS_FIELDS = 0xee00,
	CLASS_FIELDS_BYTES = 0x40,
	NAMES = 0xef00,
	NAME_BYTES = 0x50,
};

struct field {
	const char *type, *name;
	uint32_t at;
	bool is_static;
};

static const struct field common[] = {
    {"CodeCache", "_heaps", GLOBALS, true},
    {"StubRoutines", "_call_stub_return_address", GLOBALS + 8, true},
    {"Abstract_VM_Version", "_vm_major_version", GLOBALS + 16, true},
    {"PerfMemory", "_start", GLOBALS + 24, true},
    {"PerfMemory", "_top", GLOBALS + 32, true},
    {"GrowableArrayBase", "_len", 0, false},
    {"GrowableArray<int>", "_data", 8, false},
    {"CodeHeap", "_memory", 8, false},
    {"CodeHeap", "_segmap", 0x60, false},
    {"CodeHeap", "_log2_segment_size", 0xc0, false},
    {"VirtualSpace", "_low", 0x10, false},
    {"VirtualSpace", "_high_boundary", 0x18, false},
    {"CodeBlob", "_name", 8, false},
    {"CodeBlob", "_frame_size", 16, false},
    {"CodeBlob", "_frame_complete_offset", 20, false},
    {"nmethod", "_compile_id", 64, false},
    {"nmethod", "_orig_pc_offset", 72, false},
    {"nmethod", "_scopes_pcs_offset", 88, false},
    {"Method", "_constMethod", 8, false},
    {"ConstMethod", "_constants", 8, false},
    {"ConstMethod", "_constMethod_size", 16, false},
    {"ConstMethod", "_flags", 20, false},
    {"ConstMethod", "_code_size", 24, false},
    {"ConstMethod", "_name_index", 26, false},
    {"ConstantPool", "_pool_holder", 8, false},
    {"ConstantPool", "_source_file_name_index", 16, false},
    {"Klass", "_name", 8, false},
    {"Symbol", "_length", 4, false},
    {"Symbol", "_body[0]", 6, false},
    {"ThreadsSMRSupport", "_java_thread_list", GLOBALS + 40, true},
    {"ThreadsList", "_length", 4, false},
    {"ThreadsList", "_threads", 8, false},
    {"JavaThread", "_osthread", 8, false},
    {"OSThread", "_thread_id", 8, false},
    {"JavaThread", "_stack_base", 16, false},
    {"JavaThread", "_stack_size", 24, false},
    {"JavaThread", "_threadObj", 32, false},
    {"JavaThread", "_current_pending_monitor", JAVA_IMAGE_PENDING, false},
    {"JavaThread", "_current_waiting_monitor", JAVA_IMAGE_WAITING, false},
    {"ObjectMonitor", "_owner", 0, false},
    {"ObjectMonitor", "_object", 8, false},
    {"OopHandle", "_obj", 0, false},
    {"Universe", "_collectedHeap", GLOBALS + 48, true},
    {"CompressedOops", "_base", GLOBALS + 56, true},
    {"CompressedOops", "_shift", GLOBALS + 64, true},
    {"CompressedKlassPointers", "_base", GLOBALS + 72, true},
    {"CompressedKlassPointers", "_shift", GLOBALS + 80, true},
    {"CollectedHeap", "_is_gc_active", 0, false},
    {"CollectedHeap", "_total_collections", 8, false},
    {"CollectedHeap", "_reserved", 16, false},
    {"MemRegion", "_start", 0, false},
    {"MemRegion", "_word_size", 8, false},
    {"Klass", "_primary_supers[0]", 16, false},
    {"InstanceKlass", "_constants", 32, false},
    {"Array<u1>", "_data", 4, false},
    {"Array<u2>", "_data", 4, false},
    {"JVMFlag", "flags", GLOBALS + 88, true},
    {"JVMFlag", "numFlags", GLOBALS + 96, true},
    {"JVMFlag", "_name", 8, false},
    {"JVMFlag", "_addr", 0, false},
};

static const struct field old_only[] = {
    {"HeapBlock::Header", "_used", 8, false},
    {"CodeBlob", "_code_begin", 24, false},
    {"CodeBlob", "_code_end", 32, false},
    {"CompiledMethod", "_method", 56, false},
    {"CompiledMethod", "_deopt_handler_begin", 96, false},
    {"CompiledMethod", "_scopes_data_begin", 104, false},
    {"nmethod", "_dependencies_offset", 112, false},
    {"nmethod", "_metadata_offset", 116, false},
    {"InstanceKlass", "_fields", 40, false},
    {"InstanceKlass", "_java_fields_count", 48, false},
};

static const struct field new_only[] = {
    {"HeapBlock::Header", "_used", 4, false},
    {"CodeBlob", "_code_offset", 24, false},
    {"CodeBlob", "_data_offset", 28, false},
    {"CodeBlob", "_mutable_data", 32, false},
    {"CodeBlob", "_mutable_data_size", 40, false},
    {"CodeBlob", "_relocation_size", 44, false},
    {"nmethod", "_method", 56, false},
    {"nmethod", "_deopt_handler_offset", 76, false},
    {"nmethod", "_scopes_data_offset", 84, false},
    {"nmethod", "_immutable_data", 96, false},
    {"nmethod", "_immutable_data_size", 104, false},
    {"InstanceKlass", "_fieldinfo_stream", 40, false},
    {"JavaThread", "_monitor_owner_id", THREAD_ID, false},
    {"JavaThread", "_lock_stack", 96, false},
    {"LockStack", "_top", 0, false},
    {"LockStack", "_base[0]", 8, false},
};

struct type {
	const char *name;
	uint32_t old_bytes, new_bytes;
};

static const struct type types[] = {
    {"HeapBlock", 16, 8},
    {"CodeBlob", 56, 56},
    {"nmethod", 128, 128},
    {"PcDesc", 16, 16},
    {"ConstMethod", JAVA_IMAGE_CONST_BYTES, JAVA_IMAGE_CONST_BYTES},
    {"ConstantPool", 64, 64},
    {"JVMFlag", FLAG_BYTES, FLAG_BYTES},
};

// Where the next one of each is written.
struct writer {
	struct java_image *image;
	uint32_t variables, fields, types, strings;
};

void java_image_put(struct java_image *image, uint32_t at, uint64_t value, uint32_t size)
{
	if (at <= JAVA_IMAGE_BYTES - size)
		memcpy(image->bytes + at, &value, size);
}

static void put_address(struct java_image *image, uint32_t at, uint32_t to)
{
	java_image_put(image, at, java_image_address(image, to), sizeof(uint64_t));
}

static void put_bytes(struct java_image *image, uint32_t at, const void *bytes, size_t size)
{
	memcpy(image->bytes + at, bytes, size);
}

static uint32_t put_string(struct writer *writer, const char *string)
{
	const uint32_t at = writer->strings;

	put_bytes(writer->image, at, string, strlen(string) + 1);
	writer->strings += (uint32_t)strlen(string) + 1;
	return at;
}

static void put_variable(struct writer *writer, const char *name, uint64_t value)
{
	const uint32_t at = VARIABLES + writer->variables++ * VARIABLE_BYTES;

	java_image_put(writer->image, at, value, sizeof(value));
	put_bytes(writer->image, at + sizeof(value), name, strlen(name) + 1);
}

static void put_fields(struct writer *writer, const struct field *fields, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint32_t at = FIELDS + writer->fields++ * FIELD_BYTES;
		put_address(writer->image, at, put_string(writer, fields[i].type));
		put_address(writer->image, at + 8, put_string(writer, fields[i].name));
		java_image_put(writer->image, at + 24, fields[i].is_static, 4);
		if (fields[i].is_static)
			put_address(writer->image, at + 40, fields[i].at);
		else
			java_image_put(writer->image, at + 32, fields[i].at, 8);
	}
}

static void put_tables(struct writer *writer)
{
	struct java_image *image = writer->image;

	put_variable(writer, "gHotSpotVMStructs", java_image_address(image, FIELDS));
	put_variable(writer, "gHotSpotVMStructEntryArrayStride", FIELD_BYTES);
	put_variable(writer, "gHotSpotVMStructEntryTypeNameOffset", 0);
	put_variable(writer, "gHotSpotVMStructEntryFieldNameOffset", 8);
	put_variable(writer, "gHotSpotVMStructEntryIsStaticOffset", 24);
	put_variable(writer, "gHotSpotVMStructEntryOffsetOffset", 32);
	put_variable(writer, "gHotSpotVMStructEntryAddressOffset", 40);
	put_variable(writer, "gHotSpotVMTypes", java_image_address(image, TYPES));
	put_variable(writer, "gHotSpotVMTypeEntryArrayStride", TYPE_BYTES);
	put_variable(writer, "gHotSpotVMTypeEntryTypeNameOffset", 0);
	put_variable(writer, "gHotSpotVMTypeEntrySizeOffset", 24);
	put_fields(writer, common, sizeof(common) / sizeof(common[0]));
	if (image->is_new)
		put_fields(writer, new_only, sizeof(new_only) / sizeof(new_only[0]));
	else
		put_fields(writer, old_only, sizeof(old_only) / sizeof(old_only[0]));
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		const uint32_t at = TYPES + writer->types++ * TYPE_BYTES;
		put_address(image, at, put_string(writer, types[i].name));
		java_image_put(image, at + 24,
		               image->is_new ? types[i].new_bytes : types[i].old_bytes, 8);
	}
}

static void put_heap(struct java_image *image)
{
	put_address(image, GLOBALS, ARRAY);
	put_address(image, GLOBALS + 8, JAVA_IMAGE_CALL_STUB);
	java_image_put(image, GLOBALS + 16, image->is_new ? 25 : 17, 4);
	java_image_put(image, ARRAY, 1, 4);
	put_address(image, ARRAY + 8, ARRAY + 16);
	put_address(image, ARRAY + 16, CODE_HEAP);
	put_address(image, CODE_HEAP + 8 + 0x10, JAVA_IMAGE_HEAP);
	put_address(image, CODE_HEAP + 8 + 0x18, JAVA_IMAGE_HEAP + (N_SEGMENTS << SEGMENT_LOG2));
	put_address(image, CODE_HEAP + 0x60 + 0x10, SEGMENTS);
	java_image_put(image, CODE_HEAP + 0xc0, SEGMENT_LOG2, 4);
	memset(image->bytes + SEGMENTS, 0xff, N_SEGMENTS);
}

// A block with a blob, up to `end`, whose code begins at `code`.
static void put_blob(struct writer *writer, uint32_t block, uint32_t code, uint32_t end,
                     const char *name, uint32_t frame_bytes)
{
	struct java_image *image = writer->image;
	const uint32_t first = (block - JAVA_IMAGE_HEAP) >> SEGMENT_LOG2;
	const uint32_t blob = block + (image->is_new ? 8 : 16);

	for (uint32_t i = 0; block + (i << SEGMENT_LOG2) < end; i++)
		image->bytes[SEGMENTS + first + i] = (uint8_t)i;
	java_image_put(image, block + (image->is_new ? 4 : 8), 1, 1);
	put_address(image, blob + 8, put_string(writer, name));
	java_image_put(image, blob + 16, frame_bytes / 8, 4);
	java_image_put(image, blob + 20, 8, 2);
	if (image->is_new) {
		java_image_put(image, blob + 24, code - blob, 4);
		java_image_put(image, blob + 28, end - blob, 4);
	} else {
		put_address(image, blob + 24, code);
		put_address(image, blob + 32, end);
	}
}

// The tables of the compiled method: for its one call, and the scopes there.
static void put_method_tables(struct java_image *image)
{
	static const int32_t pcs[][4] = {{-1, 0, 0, 0},
	                                 {JAVA_IMAGE_RETURN - JAVA_IMAGE_CODE, 5, 0, 0},
	                                 {JAVA_IMAGE_CODE_BYTES, 0, 0, 0}};
	// Outer.run's at 1, at its bytecode 5; Inner.work's at 5, at 300: 301 is 192 + 45 + (1 <<
	// 6).
	static const uint8_t scopes[] = {0, 0, 1, 6, 0, 1, 2, 192 + 45, 1, 0};
	const uint32_t blob = JAVA_IMAGE_COMPILED + (image->is_new ? 8 : 16);
	const uint32_t tables = image->is_new ? TABLES : JAVA_IMAGE_CODE + JAVA_IMAGE_CODE_BYTES;
	const uint32_t metadata = image->is_new ? METADATA : tables;
	const uint32_t at = image->is_new ? tables + 0x30 : tables + 0x10;
	const uint32_t pcs_at = image->is_new ? tables : at + 0x10;

	put_address(image, metadata, JAVA_IMAGE_OUTER);
	put_address(image, metadata + 8, JAVA_IMAGE_INNER);
	for (size_t i = 0; i < sizeof(scopes); i++)
		image->bytes[at + i] = (uint8_t)(scopes[i] + image->is_new);
	put_bytes(image, pcs_at, pcs, sizeof(pcs));
	if (!image->is_new) {
		put_address(image, blob + 96, JAVA_IMAGE_DEOPT);
		put_address(image, blob + 104, at);
		java_image_put(image, blob + 88, pcs_at - blob, 4);
		java_image_put(image, blob + 112, pcs_at + (uint32_t)sizeof(pcs) - blob, 4);
		java_image_put(image, blob + 116, metadata - blob, 4);
		return;
	}
	put_address(image, blob + 32, METADATA - 0x20);
	java_image_put(image, blob + 40, 0x30, 4);
	java_image_put(image, blob + 44, 0x20, 4);
	java_image_put(image, blob + 76, JAVA_IMAGE_DEOPT - blob, 4);
	java_image_put(image, blob + 84, 0x30, 4);
	put_address(image, blob + 96, TABLES);
	java_image_put(image, blob + 104, 0x30 + sizeof(scopes), 4);
}

static void put_code(struct writer *writer)
{
	struct java_image *image = writer->image;
	const uint32_t blob = JAVA_IMAGE_COMPILED + (image->is_new ? 8 : 16);

	put_blob(writer, JAVA_IMAGE_COMPILED, JAVA_IMAGE_CODE,
	         JAVA_IMAGE_CODE + JAVA_IMAGE_CODE_BYTES, "nmethod", JAVA_IMAGE_FRAME_BYTES);
	put_address(image, blob + 56, JAVA_IMAGE_OUTER);
	java_image_put(image, blob + 64, JAVA_IMAGE_COMPILE_ID, 4);
	java_image_put(image, blob + 68, LEVEL_C2, 1);
	java_image_put(image, blob + 72, JAVA_IMAGE_ORIG_PC, 4);
	put_method_tables(image);
	// Its tables are behind the code, in the same block.
	for (uint32_t i = 0; i < 16; i++)
		image->bytes[SEGMENTS + ((JAVA_IMAGE_COMPILED - JAVA_IMAGE_HEAP) >> SEGMENT_LOG2) +
		             i] = (uint8_t)i;
	put_blob(writer, 0x6400, JAVA_IMAGE_INTERPRETER, 0x6e00, "Interpreter", 0);
	put_blob(writer, 0x6e00, JAVA_IMAGE_STUB, 0x7400, "RuntimeStub - resolve",
	         JAVA_IMAGE_STUB_FRAME_BYTES);
	put_blob(writer, 0x7400, JAVA_IMAGE_FRAMELESS, 0x7a00, "vtable chunks", 0);
	put_blob(writer, 0x7a00, JAVA_IMAGE_CALL_STUB, 0x8000, "StubRoutines (1)", 0);
}

static void put_symbol(struct java_image *image, uint32_t at, const char *name)
{
	java_image_put(image, at + 4, strlen(name), 2);
	put_bytes(image, at + 6, name, strlen(name));
}

static void put_method(struct java_image *image, uint32_t method, uint32_t at, uint16_t name)
{
	// 100 lines from 0, as 200 with the sign in its lowest bit; then 5 bytecodes and 7 lines.
	static const uint8_t lines[] = {0xff, 0, 200, 0, 0x2f, 0};
	const uint32_t code_bytes = 0x10;

	put_address(image, method + 8, at);
	put_address(image, at + 8, POOL);
	java_image_put(image, at + 16, (JAVA_IMAGE_CONST_BYTES + code_bytes + 0x10) / 8, 4);
	java_image_put(image, at + 20, 1, 4);
	java_image_put(image, at + 24, code_bytes, 2);
	java_image_put(image, at + 26, name, 2);
	// In JDK 25 each byte of a packed number is one more.
	for (uint32_t i = 0; i < sizeof(lines); i++)
		image->bytes[at + JAVA_IMAGE_CONST_BYTES + code_bytes + i] =
		    (uint8_t)(lines[i] + (image->is_new && i >= 1 && i <= 3));
}

static void put_methods(struct java_image *image)
{
	put_method(image, JAVA_IMAGE_OUTER, JAVA_IMAGE_CONST, 2);
	put_method(image, JAVA_IMAGE_INNER, JAVA_IMAGE_CONST + 0x100, 3);
	put_address(image, POOL + 8, CLASS);
	java_image_put(image, POOL + 16, 1, 2);
	put_address(image, POOL + 64 + 8, SYMBOLS);
	put_address(image, POOL + 64 + 16, SYMBOLS + 0x40);
	put_address(image, POOL + 64 + 24, SYMBOLS + 0x80);
	put_address(image, CLASS + 8, SYMBOLS + 0xc0);
	put_symbol(image, SYMBOLS, "Outer.java");
	put_symbol(image, SYMBOLS + 0x40, "run");
	put_symbol(image, SYMBOLS + 0x80, "work");
	put_symbol(image, SYMBOLS + 0xc0, "org/example/Outer");
}

static void put_counter(struct java_image *image)
{
	static const char name[] = "java.cls.unloadedClasses";

	put_address(image, GLOBALS + 24, PERF);
	put_address(image, GLOBALS + 32, PERF + 0x100);
	java_image_put(image, PERF, 0xc0c0feca, 4);
	java_image_put(image, PERF + 7, 1, 1);
	java_image_put(image, PERF + 24, 0x20, 4);
	java_image_put(image, PERF + 28, 1, 4);
	java_image_put(image, PERF + 0x20, 0x60, 4);
	java_image_put(image, PERF + 0x24, 0x40, 4);
	java_image_put(image, PERF + 0x30, JAVA_IMAGE_UNLOADED - PERF - 0x20, 4);
	put_bytes(image, PERF + 0x60, name, sizeof(name));
}

static void put_flags(struct writer *writer)
{
	static const struct {
		const char *name;
		bool is_set;
	} flags[] = {{"UseCompressedOops", true},
	             {"UseG1GC", true},
	             {"UseCompressedClassPointers", true},
	             {"UseSerialGC", false}};
	struct java_image *image = writer->image;

	put_address(image, GLOBALS + 88, FLAGS);
	java_image_put(image, GLOBALS + 96, sizeof(flags) / sizeof(flags[0]), 8);
	for (uint32_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		put_address(image, FLAGS + i * FLAG_BYTES, FLAG_VALUES + i);
		put_address(image, FLAGS + i * FLAG_BYTES + 8, put_string(writer, flags[i].name));
		java_image_put(image, FLAG_VALUES + i, flags[i].is_set, 1);
	}
}

static void put_thread(struct java_image *image, uint32_t thread, uint32_t i, uint32_t object)
{
	put_address(image, THREADS_ARRAY + 8 * i, thread);
	put_address(image, thread + 8, JAVA_IMAGE_OS_THREADS + 64 * i);
	put_address(image, thread + 16, JAVA_IMAGE_STACK + (i + 1) * JAVA_IMAGE_STACK_BYTES / 2);
	java_image_put(image, thread + 24, JAVA_IMAGE_STACK_BYTES / 2, 8);
	put_address(image, thread + 32, HANDLES + 8 * i);
	put_address(image, HANDLES + 8 * i, object);
	java_image_put(image, thread + THREAD_ID, 3 + i, 8);
}

static void put_threads(struct java_image *image)
{
	put_address(image, GLOBALS + 40, THREADS_LIST);
	java_image_put(image, THREADS_LIST + 4, 2, 4);
	put_address(image, THREADS_LIST + 8, THREADS_ARRAY);
	put_thread(image, JAVA_IMAGE_OWNER, 0, OWNER_OBJECT);
	put_thread(image, JAVA_IMAGE_WAITER, 1, WAITER_OBJECT);
	put_address(image, JAVA_IMAGE_WAITER + JAVA_IMAGE_PENDING, JAVA_IMAGE_MONITOR);
	if (image->is_new)
		java_image_put(image, JAVA_IMAGE_MONITOR, 3, 8);
	else
		put_address(image, JAVA_IMAGE_MONITOR, JAVA_IMAGE_OWNER);
	put_address(image, JAVA_IMAGE_MONITOR + 8, HANDLES + 16);
	put_address(image, HANDLES + 16, JAVA_IMAGE_LOCK);
}

// A class with its fields at offsets 12, 16, ...
static void put_class(struct java_image *image, uint32_t i, const char *name,
                      const char *const *fields, uint32_t n)
{
	const uint32_t class = CLASSES + i * CLASS_BYTES,
	               at = CLASS_FIELDS + i * CLASS_FIELDS_BYTES;
	const uint32_t constants = CONSTANTS + i * CONSTANTS_BYTES;
	const uint32_t symbol = NAMES + i * 4 * NAME_BYTES;
	uint8_t *stream = image->bytes + at + 4;

	put_symbol(image, symbol, name);
	put_address(image, class + 8, symbol);
	put_address(image, class + 16, CLASSES);
	put_address(image, class + 24, i ? class : 0);
	put_address(image, class + 32, constants);
	put_address(image, class + 40, at);
	java_image_put(image, class + 48, n, 2);
	java_image_put(image, at, 2 + 5 * n, 4);
	*stream++ = (uint8_t)(n + 1);
	*stream++ = 1;
	for (uint32_t j = 0; j < n; j++) {
		put_symbol(image, symbol + (j + 1) * NAME_BYTES, fields[j]);
		put_address(image, constants + 64 + 8 * (j + 1), symbol + (j + 1) * NAME_BYTES);
		if (image->is_new) {
			const uint8_t numbers[] = {j + 2, 2, (uint8_t)(12 + 4 * j + 1), 1, 1};
			memcpy(stream + 5 * j, numbers, sizeof(numbers));
		} else {
			java_image_put(image, at + 4 + 12 * j + 2, j + 1, 2);
			java_image_put(image, at + 4 + 12 * j + 8, (12 + 4 * j) << 2 | 1, 2);
		}
	}
}

// An object whose class is the i-th.
static void put_object(struct java_image *image, uint32_t at, uint32_t i)
{
	java_image_put(image, at + 8, CLASSES + i * CLASS_BYTES, 4);
}

static void put_objects(struct java_image *image)
{
	static const char *const thread[] = {"name", "parkBlocker", "eetop"};
	static const char *const string[] = {"value", "coder"};
	static const char *const lock[] = {"exclusiveOwnerThread"};
	static const char name[] = "the owner";

	put_address(image, GLOBALS + 48, JAVA_IMAGE_COLLECTOR);
	put_address(image, GLOBALS + 56, 0);
	put_address(image, GLOBALS + 72, 0);
	put_address(image, JAVA_IMAGE_COLLECTOR + 16, OBJECTS);
	java_image_put(image, JAVA_IMAGE_COLLECTOR + 24, OBJECTS_BYTES / 8, 8);
	put_class(image, 0, "java/lang/Object", NULL, 0);
	put_class(image, 1, "java/lang/Thread", thread, 3);
	put_class(image, 2, "java/lang/String", string, 2);
	put_class(image, 3, "java/util/concurrent/locks/AbstractOwnableSynchronizer", lock, 1);
	put_object(image, OWNER_OBJECT, 1);
	java_image_put(image, OWNER_OBJECT + 12, STRING, 4);
	put_address(image, OWNER_OBJECT + 20, JAVA_IMAGE_OWNER);
	put_object(image, STRING, 2);
	java_image_put(image, STRING + 12, STRING_BYTES, 4);
	put_object(image, STRING_BYTES, 0);
	java_image_put(image, STRING_BYTES + 12, sizeof(name) - 1, 4);
	put_bytes(image, STRING_BYTES + 16, name, sizeof(name));
	put_object(image, WAITER_OBJECT, 1);
	java_image_put(image, WAITER_OBJECT + 16, JAVA_IMAGE_LOCK, 4);
	put_object(image, JAVA_IMAGE_LOCK, 3);
	java_image_put(image, JAVA_IMAGE_LOCK + 12, OWNER_OBJECT, 4);
}

void java_image_build(struct java_image *image)
{
	struct writer writer = {.image = image, .strings = STRINGS};

	memset(image->bytes, 0, JAVA_IMAGE_BYTES);
	put_tables(&writer);
	put_heap(image);
	put_code(&writer);
	put_methods(image);
	put_counter(image);
	put_flags(&writer);
	put_threads(image);
	put_objects(image);
}

uint64_t java_image_variable(void *context, const char *name)
{
	struct java_image *image = context;

	for (uint32_t i = 0; i < N_VARIABLES; i++) {
		const uint32_t at = VARIABLES + i * VARIABLE_BYTES;
		if (strncmp((const char *)image->bytes + at + 8, name, VARIABLE_BYTES - 8) == 0)
			return java_image_address(image, at);
	}
	return 0;
}

const char *java_image_string(void *context, uint64_t address)
{
	const struct java_image *image = context;
	const uint64_t at = address - java_image_address(image, 0);

	return at < JAVA_IMAGE_BYTES && memchr(image->bytes + at, '\0', JAVA_IMAGE_BYTES - at)
	           ? (const char *)image->bytes + at
	           : NULL;
}

// SPDX-License-Identifier: MIT
#include "java_methods.h"

#include <stdlib.h>
#include <string.h>

#include "frame_names.h"
#include "java_name.h"
#include "java_stream.h"
#include "java_symbol.h"
#include "memory.h"

enum {
	WORD = 8,
	MAX_METHODS = 1 << 16,
	MAX_LINES_BYTES = 8 << 20,  // of all methods
	MAX_METHOD_BYTES = 1 << 20, // bytecodes (65535 at most), lines, and other tables
	CONST_HIDDEN = 1 << 12,
	METHOD_HIDDEN = 1 << 3,  // up to JDK 20
	FLAG_LINES = 1,          // ConstMethodFlags: has_linenumber_table
	FIRST_WITHOUT_ZERO = 20, // JDK (java_stream.h)
};

void java_methods_clear(struct java_methods *methods)
{
	for (size_t i = 0; i < methods->n; i++)
		free(methods->items[i].lines);
	methods->n = methods->lines_bytes = 0;
	hash_index_clear(&methods->index);
}

void java_methods_deinit(struct java_methods *methods)
{
	java_methods_clear(methods);
	free(methods->items);
	hash_index_deinit(&methods->index);
	methods->items = NULL;
}

static bool method_equal(const void *context, uint32_t id, const void *key)
{
	return ((const struct java_methods *)context)->items[id].address == *(const uint64_t *)key;
}

// Reads the name of the file with the class's source; "" if the class does not say it.
static void read_file(const struct java_layout *layout, const struct java_memory *memory,
                      uint64_t pool, uint64_t holder, char ret[JAVA_SYMBOL_SIZE])
{
	const uint64_t at = layout->pool_file != JAVA_NO_FIELD
	                        ? pool + (uint64_t)layout->pool_file
	                        : holder + (uint64_t)layout->klass_file;
	uint16_t index = 0;

	if ((layout->pool_file == JAVA_NO_FIELD && layout->klass_file == JAVA_NO_FIELD) ||
	    !java_read(memory, at, &index, sizeof(index)) ||
	    !java_symbol_constant(layout, memory, pool, index, ret))
		ret[0] = '\0';
}

// Adds the method's names to the table. Returns FRAME_NAMES_NONE if they cannot be read.
static uint32_t add_names(struct java_methods *methods, const struct java_memory *memory,
                          const uint8_t *const_method)
{
	const struct java_layout *layout = methods->layout;
	const uint64_t pool = java_word(const_method, layout->const_pool);
	char class[JAVA_SYMBOL_SIZE], name[JAVA_SYMBOL_SIZE], file[JAVA_SYMBOL_SIZE];
	const uint64_t holder = java_read_word(memory, pool + (uint64_t)layout->pool_holder);
	const uint64_t class_at = java_read_word(memory, holder + (uint64_t)layout->klass_name);

	if (pool == 0 || holder == 0 || !java_symbol_read(layout, memory, class_at, class) ||
	    !java_symbol_constant(layout, memory, pool, java_u16(const_method, layout->const_name),
	                          name))
		return FRAME_NAMES_NONE;
	read_file(layout, memory, pool, holder, file);
	_cleanup_free_ char *full = java_name_method(class, name);
	return frame_names_add(methods->names, full, file, 0);
}

// Keeps the line table, which follows the bytecodes.
static void keep_lines(const struct java_layout *layout, const uint8_t *bytes, size_t size,
                       struct java_method *method)
{
	const size_t at = (size_t)layout->const_bytes + method->code_bytes;

	if (!(bytes[layout->const_flags] & FLAG_LINES) || at >= size)
		return;
	// It ends with a 0. Other tables follow.
	struct java_stream stream = {
	    .at = bytes + at,
	    .end = bytes + size,
	    .leaves_out_zero = layout->major >= FIRST_WITHOUT_ZERO,
	};
	for (uint8_t byte; (byte = java_stream_byte(&stream)) != 0;)
		if (byte == 0xff) {
			java_stream_signed(&stream);
			java_stream_signed(&stream);
		}
	method->lines_size = (size_t)(stream.at - (bytes + at));
	method->lines = memory_alloc(method->lines_size);
	memcpy(method->lines, bytes + at, method->lines_size);
}

// True if the method has the annotation @Hidden, as methods made for lambdas and method handles
// have. No table tells where the flag is (method.hpp, constMethodFlags.hpp).
static bool is_hidden(const struct java_layout *layout, const struct java_memory *memory,
                      uint64_t address, const uint8_t *const_method)
{
	const int32_t in_const = 21; // JDK
	uint16_t flags = 0;

	if (layout->major >= in_const)
		return java_u32(const_method, layout->const_flags) & CONST_HIDDEN;
	return layout->method_flags >= 0 &&
	       java_read(memory, address + (uint64_t)layout->method_flags, &flags, sizeof(flags)) &&
	       flags & METHOD_HIDDEN;
}

static bool read_method(struct java_methods *methods, const struct java_memory *memory,
                        uint64_t address, struct java_method *ret)
{
	const struct java_layout *layout = methods->layout;
	uint8_t head[JAVA_MAX_STRUCTURE + sizeof(uint64_t)] = {0};
	const uint64_t at = java_read_word(memory, address + (uint64_t)layout->const_method);

	if (at == 0 || at % WORD != 0 || !java_read(memory, at, head, (size_t)layout->const_bytes))
		return false;
	const uint64_t size = (uint64_t)java_u32(head, layout->const_size) * WORD;
	*ret = (struct java_method){
	    .address = address,
	    .const_method = at,
	    .code_bytes = java_u16(head, layout->const_code_size),
	    .is_hidden = is_hidden(layout, memory, address, head),
	};
	if (size < (uint64_t)layout->const_bytes + ret->code_bytes || size > MAX_METHOD_BYTES)
		return false;
	_cleanup_free_ uint8_t *bytes = memory_alloc(size);
	if (!java_read(memory, at, bytes, size))
		return false;
	ret->function = add_names(methods, memory, head);
	if (ret->function == FRAME_NAMES_NONE)
		return false;
	keep_lines(layout, bytes, size, ret);
	return true;
}

const struct java_method *java_methods_find(const struct java_methods *methods, uint64_t address)
{
	const uint64_t hash = hash_mix(address, 0);
	const uint32_t id = hash_index_find(&methods->index, hash, method_equal, methods, &address);

	return id != HASH_NONE ? &methods->items[id] : NULL;
}

const struct java_method *java_methods_get(struct java_methods *methods,
                                           const struct java_memory *memory, uint64_t address)
{
	const struct java_method *known = java_methods_find(methods, address);
	struct java_method method;

	if (known)
		return known;
	if (address == 0 || address % WORD != 0 || !read_method(methods, memory, address, &method))
		return NULL;
	if (methods->n == MAX_METHODS || methods->lines_bytes > MAX_LINES_BYTES)
		java_methods_clear(methods);
	methods->lines_bytes += method.lines_size;
	*array_push(methods->items, methods->n, methods->capacity) = method;
	hash_index_insert(&methods->index, hash_mix(address, 0), (uint32_t)(methods->n - 1));
	return &methods->items[methods->n - 1];
}

// Sums of damaged tables wrap.
static int32_t add(int32_t a, int32_t b)
{
	return (int32_t)((uint32_t)a + (uint32_t)b);
}

uint32_t java_method_line(const struct java_layout *layout, const struct java_method *method,
                          int32_t bci)
{
	const uint8_t far = 0xff; // both distances are in full
	struct java_stream stream = {
	    .at = method->lines,
	    .end = method->lines ? method->lines + method->lines_size : NULL,
	    .leaves_out_zero = layout->major >= FIRST_WITHOUT_ZERO,
	};
	int32_t at = 0, line = 0, best_at = -1, best = 0;

	bci = bci < 0 ? 0 : bci;
	for (uint8_t byte; (byte = java_stream_byte(&stream)) != 0;) {
		at = add(at, byte == far ? java_stream_signed(&stream) : byte >> 3);
		line = add(line, byte == far ? java_stream_signed(&stream) : byte & 7);
		if (at == bci)
			return (uint32_t)line;
		if (at < bci && at >= best_at) {
			best_at = at;
			best = line;
		}
	}
	return best > 0 ? (uint32_t)best : 0;
}

int32_t java_method_bci(const struct java_layout *layout, const struct java_method *method,
                        uint64_t bytecode)
{
	const uint64_t index = bytecode - method->const_method - (uint64_t)layout->const_bytes;

	return index < method->code_bytes ? (int32_t)index : -1;
}

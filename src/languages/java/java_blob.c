// SPDX-License-Identifier: MIT
#include "java_blob.h"

#include <string.h>

#include "java_stream.h"
#include "memory.h"

enum {
	WORD = 8,
	MAX_FRAME_WORDS = 1 << 17,
	MAX_CODE_BYTES = 64 << 20,
	MAX_TABLE_BYTES = 4 << 20, // of a method's PcDescs, of its scopes, and of its metadata
	FIRST_WITHOUT_ZERO = 20,   // JDK (java_stream.h)
	NO_PROLOGUE = -1,
};

// PcDesc: the two fields that are used.
struct pc_desc {
	int32_t offset; // from the beginning of the code; the first one's is -1
	int32_t scope;  // where its innermost scope is
};

static enum java_blob_kind kind_of(const char *name, uint32_t frame_bytes)
{
	if (strcmp(name, "nmethod") == 0)
		return JAVA_COMPILED;
	if (strcmp(name, "native nmethod") == 0)
		return JAVA_NATIVE;
	if (strcmp(name, "Interpreter") == 0)
		return JAVA_INTERPRETER;
	if (frame_bytes > 0)
		return JAVA_STUB;
	// "vtable chunks", "I2C/C2I adapters", "MethodHandles adapters"
	return strncmp(name, "vtable", strlen("vtable")) == 0 || strstr(name, "dapter")
	           ? JAVA_FRAMELESS
	           : JAVA_OTHER;
}

static bool read_name(const struct java_source *source, const struct java_layout *layout,
                      const uint8_t *bytes, struct java_blob *blob)
{
	const char *name =
	    source->find_string(source->context, java_word(bytes, layout->blob_name));

	if (!name)
		return false;
	const size_t size = strlen(name);
	memcpy(blob->name, name, size < sizeof(blob->name) ? size : sizeof(blob->name) - 1);
	return true;
}

static bool read_code(const struct java_layout *layout, const uint8_t *bytes,
                      struct java_blob *blob)
{
	const uint32_t words = java_u32(bytes, layout->blob_frame_size);
	const int16_t complete = (int16_t)java_u16(bytes, layout->blob_complete);

	if (layout->code_begin != JAVA_NO_FIELD) {
		blob->begin = java_word(bytes, layout->code_begin);
		blob->end = java_word(bytes, layout->code_end);
	} else {
		blob->begin = blob->address + java_u32(bytes, layout->code_offset);
		blob->end = blob->address + java_u32(bytes, layout->data_offset);
	}
	blob->frame_bytes = words <= MAX_FRAME_WORDS ? words * WORD : 0;
	blob->complete = complete == NO_PROLOGUE || complete < 0 ? 0 : (uint32_t)complete;
	return blob->begin >= blob->address && blob->begin < blob->end &&
	       blob->end - blob->address <= MAX_CODE_BYTES;
}

// The tables of JDK 9 to 22 follow the code.
static void read_old_tables(const struct java_layout *layout, const uint8_t *bytes,
                            struct java_blob *blob)
{
	blob->deopt = java_word(bytes, layout->deopt);
	blob->deopt_mh = java_word(bytes, layout->deopt_mh);
	blob->metadata = blob->address + java_u32(bytes, layout->metadata_offset);
	blob->metadata_end = blob->scopes = java_word(bytes, layout->scopes_begin);
	blob->scopes_end = blob->pcs = blob->address + java_u32(bytes, layout->pcs_offset);
	blob->pcs_end = blob->address + java_u32(bytes, layout->dependencies_offset);
}

// From JDK 23 on they are in memory of their own. `metadata_offset` has 16 bits there.
static void read_new_tables(const struct java_layout *layout, const uint8_t *bytes,
                            struct java_blob *blob)
{
	const uint64_t tables = java_word(bytes, layout->immutable_data);
	const uint64_t mutable = java_word(bytes, layout->mutable_data);

	blob->deopt = blob->address + java_u32(bytes, layout->deopt);
	if (layout->deopt_mh != JAVA_NO_FIELD)
		blob->deopt_mh = blob->address + java_u32(bytes, layout->deopt_mh);
	blob->pcs = tables + java_u32(bytes, layout->pcs_offset);
	blob->pcs_end = blob->scopes = tables + java_u32(bytes, layout->scopes_offset);
	blob->scopes_end = tables + java_u32(bytes, layout->immutable_size);
	if (layout->mutable_data != JAVA_NO_FIELD) {
		blob->metadata = mutable + java_u32(bytes, layout->relocation_size);
		blob->metadata_end = mutable + java_u32(bytes, layout->mutable_size);
	} else {
		blob->metadata = blob->address + java_u16(bytes, layout->metadata_offset);
		blob->metadata_end = blob->end;
	}
}

static void read_method(const struct java_layout *layout, const uint8_t *bytes,
                        struct java_blob *blob)
{
	const int32_t orig_pc = (int32_t)java_u32(bytes, layout->orig_pc);

	blob->compile_id = java_u32(bytes, layout->compile_id);
	blob->method = java_word(bytes, layout->method);
	blob->orig_pc =
	    orig_pc > 0 && (uint32_t)orig_pc < blob->frame_bytes ? (uint32_t)orig_pc : 0;
	if (layout->immutable_data == JAVA_NO_FIELD)
		read_old_tables(layout, bytes, blob);
	else
		read_new_tables(layout, bytes, blob);
}

bool java_blob_read(const struct java_source *source, const struct java_layout *layout,
                    uint64_t block, struct java_blob *ret)
{
	const size_t head = (size_t)layout->block_bytes;
	const size_t least = (size_t)layout->blob_bytes, most = (size_t)layout->nmethod_bytes;
	uint8_t bytes[2 * JAVA_MAX_STRUCTURE + sizeof(uint64_t)] = {0};

	*ret = (struct java_blob){.address = block + head};
	if (!java_read(&source->memory, block, bytes, head + least) ||
	    bytes[layout->block_used] != 1 || !read_name(source, layout, bytes + head, ret) ||
	    !read_code(layout, bytes + head, ret))
		return false;
	ret->kind = kind_of(ret->name, ret->frame_bytes);
	if (ret->kind != JAVA_COMPILED && ret->kind != JAVA_NATIVE)
		return true;
	if (!java_read(&source->memory, block, bytes, head + most))
		return false;
	read_method(layout, bytes + head, ret);
	return true;
}

size_t java_blob_check_bytes(const struct java_layout *layout, const struct java_blob *blob)
{
	const int32_t last = blob->kind == JAVA_COMPILED || blob->kind == JAVA_NATIVE
	                         ? layout->compile_id
	                         : layout->blob_frame_size;

	return (size_t)(layout->block_bytes + last) + sizeof(uint32_t);
}

bool java_blob_is_same(const struct java_layout *layout, const struct java_blob *blob,
                       const uint8_t *bytes)
{
	const uint8_t *head = bytes + layout->block_bytes;

	if (bytes[layout->block_used] != 1)
		return false;
	if (blob->kind == JAVA_COMPILED || blob->kind == JAVA_NATIVE)
		return java_u32(head, layout->compile_id) == blob->compile_id;
	return java_u32(head, layout->blob_frame_size) * WORD == blob->frame_bytes ||
	       blob->frame_bytes == 0;
}

// Copies a table; NULL: it is empty, or cannot be read. The caller frees it.
static void *copy_table(const struct java_memory *memory, uint64_t start, uint64_t end,
                        size_t *ret_size)
{
	const uint64_t size = end - start;

	*ret_size = 0;
	if (start == 0 || end <= start || size > MAX_TABLE_BYTES)
		return NULL;
	void *bytes = memory_alloc(size);
	if (!java_read(memory, start, bytes, size)) {
		free(bytes);
		return NULL;
	}
	*ret_size = size;
	return bytes;
}

static struct pc_desc read_desc(const struct java_layout *layout, const uint8_t *table, size_t i)
{
	struct pc_desc desc;

	memcpy(&desc, table + i * (size_t)layout->pc_bytes, sizeof(desc));
	return desc;
}

// Finds the first PcDesc at the offset or behind it: they are sorted.
static bool find_desc(const struct java_layout *layout, const uint8_t *table, size_t size,
                      int32_t offset, struct pc_desc *ret)
{
	size_t low = 0, high = size / (size_t)layout->pc_bytes;
	const size_t n = high;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (read_desc(layout, table, middle).offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == n)
		return false;
	*ret = read_desc(layout, table, low);
	return true;
}

static bool find_desc_of(const struct java_memory *memory, const struct java_layout *layout,
                         const struct java_blob *blob, uint64_t pc, struct pc_desc *ret)
{
	size_t size;

	if (layout->pc_bytes < (int32_t)sizeof(*ret) || pc < blob->begin || pc >= blob->end)
		return false;
	_cleanup_free_ uint8_t *table = copy_table(memory, blob->pcs, blob->pcs_end, &size);
	return table && find_desc(layout, table, size, (int32_t)(pc - blob->begin), ret);
}

bool java_blob_has_return(const struct java_memory *memory, const struct java_layout *layout,
                          const struct java_blob *blob, uint64_t pc)
{
	struct pc_desc desc;

	return find_desc_of(memory, layout, blob, pc, &desc) &&
	       desc.offset == (int32_t)(pc - blob->begin);
}

// Reads the scope, and returns where the scope of its caller is; 0: it has none.
static uint32_t read_scope(const struct java_layout *layout, const uint8_t *scopes, size_t size,
                           uint32_t at, uint32_t *ret_method, int32_t *ret_bci)
{
	struct java_stream stream = {
	    .at = scopes + at,
	    .end = scopes + size,
	    .leaves_out_zero = layout->major >= FIRST_WITHOUT_ZERO,
	};

	const uint32_t sender = java_stream_unsigned(&stream);
	*ret_method = java_stream_unsigned(&stream);
	*ret_bci = (int32_t)java_stream_unsigned(&stream) - 1;
	return sender;
}

// Follows the scopes from the innermost one on. A caller's is always written before its callee's.
static size_t read_scopes(const struct java_memory *memory, const struct java_layout *layout,
                          const struct java_blob *blob, uint32_t at, struct java_scope *ret)
{
	size_t size, metadata_size, n = 0;
	_cleanup_free_ uint8_t *scopes = copy_table(memory, blob->scopes, blob->scopes_end, &size);
	_cleanup_free_ uint64_t *metadata =
	    copy_table(memory, blob->metadata, blob->metadata_end, &metadata_size);

	while (at > 0 && at < size && n < JAVA_MAX_SCOPES) {
		uint32_t method;
		int32_t bci;
		const uint32_t sender = read_scope(layout, scopes, size, at, &method, &bci);
		if (method == 0 || method > metadata_size / sizeof(*metadata))
			return 0;
		ret[n++] = (struct java_scope){metadata[method - 1], bci};
		if (sender == 0)
			return n;
		if (sender >= at)
			return 0;
		at = sender;
	}
	return 0;
}

size_t java_blob_scopes(const struct java_memory *memory, const struct java_layout *layout,
                        const struct java_blob *blob, uint64_t pc, bool is_return,
                        struct java_scope *ret)
{
	struct pc_desc desc;

	if (!find_desc_of(memory, layout, blob, pc, &desc) || desc.scope <= 0 ||
	    (is_return && desc.offset != (int32_t)(pc - blob->begin)))
		return 0;
	return read_scopes(memory, layout, blob, (uint32_t)desc.scope, ret);
}

// SPDX-License-Identifier: MIT
// An object begins with its mark and its class (oop.hpp), both words; the class may be narrow, half
// a word, or part of the mark. References to objects may be narrow as well.
#include "java_objects.h"

#include <string.h>

#include "java_fields.h"
#include "java_name.h"
#include "java_symbol.h"
#include "memory.h"

enum {
	WORD = 8,
	CLASS_AT = 8,
	COMPACT_CLASS_SHIFT = 42, // markWord::klass_shift
	N_SUPERS = 2,             // that are read: java.lang.Object, and its subclass
	MAX_SHIFT = 16,
	MAX_TRIES = 1000,
	MAX_STRING_BYTES = 512,
	FIRST_DENSE = 23, // the first JDK whose arrays of bytes begin directly after their length
};

void java_objects_init(struct java_objects *objects, const struct java_layout *layout)
{
	const struct java_fields none = {JAVA_NO_FIELD, JAVA_NO_FIELD, JAVA_NO_FIELD,
	                                 JAVA_NO_FIELD, JAVA_NO_FIELD, JAVA_NO_FIELD};

	*objects = (struct java_objects){.layout = layout, .fields = none};
}

static bool read_flag(const struct java_memory *memory, uint64_t address)
{
	uint8_t flag = 0;

	return java_read(memory, address, &flag, sizeof(flag)) && flag == 1;
}

static uint32_t read_shift(const struct java_memory *memory, uint64_t address)
{
	uint32_t shift = 0;

	return java_read(memory, address, &shift, sizeof(shift)) && shift <= MAX_SHIFT ? shift : 0;
}

static bool has_layout(const struct java_layout *layout)
{
	return layout->heap && layout->heap_reserved >= 0 && layout->heap_is_active >= 0 &&
	       layout->heap_collections >= 0 && layout->region_start >= 0 &&
	       layout->region_words >= 0 && layout->class_supers >= 0 && layout->oop_base &&
	       layout->oop_shift && layout->class_base && layout->class_shift &&
	       java_fields_are_known(layout);
}

// The options are final once there is a heap.
static void ask(struct java_objects *objects, const struct java_memory *memory)
{
	const struct java_layout *layout = objects->layout;

	if (objects->is_asked)
		return;
	objects->heap = has_layout(layout) ? java_read_word(memory, layout->heap) : 0;
	if (objects->heap == 0)
		return;
	const uint64_t region = objects->heap + (uint64_t)layout->heap_reserved;
	objects->low = java_read_word(memory, region + (uint64_t)layout->region_start);
	objects->high =
	    objects->low + java_read_word(memory, region + (uint64_t)layout->region_words) * WORD;
	if (objects->low == 0)
		return;
	objects->has_narrow_oops = read_flag(memory, layout->has_narrow_oops);
	objects->has_narrow_classes = read_flag(memory, layout->has_narrow_classes);
	objects->has_compact_heads = read_flag(memory, layout->has_compact_heads);
	objects->oop_base = java_read_word(memory, layout->oop_base);
	objects->oop_shift = read_shift(memory, layout->oop_shift);
	objects->class_base = java_read_word(memory, layout->class_base);
	objects->class_shift = read_shift(memory, layout->class_shift);
	objects->is_readable = read_flag(memory, layout->uses_serial) ||
	                       read_flag(memory, layout->uses_parallel) ||
	                       read_flag(memory, layout->uses_g1);
	objects->is_asked = true;
}

// False if a collection is under way.
static bool read_collections(const struct java_objects *objects, const struct java_memory *memory,
                             uint32_t *ret)
{
	const struct java_layout *layout = objects->layout;
	uint8_t is_active = 1;
	struct resident_block blocks[] = {
	    {objects->heap + (uint64_t)layout->heap_collections, ret, sizeof(*ret), false},
	    {objects->heap + (uint64_t)layout->heap_is_active, &is_active, 1, false},
	};

	java_read_blocks(memory, blocks, array_size(blocks));
	return blocks[0].is_read && blocks[1].is_read && is_active == 0;
}

bool java_objects_hold(const struct java_objects *objects, const struct java_memory *memory)
{
	uint32_t collections;

	return read_collections(objects, memory, &collections) &&
	       collections == objects->collections;
}

// Returns the address if an object may be there, else 0.
static uint64_t in_heap(const struct java_objects *objects, uint64_t address)
{
	return address >= objects->low && address < objects->high && address % WORD == 0 ? address
	                                                                                 : 0;
}

uint64_t java_objects_of_handle(const struct java_objects *objects,
                                const struct java_memory *memory, uint64_t handle)
{
	return in_heap(objects,
	               objects->layout->handle >= 0 ? java_read_word(memory, handle) : handle);
}

uint64_t java_objects_get(const struct java_objects *objects, const struct java_memory *memory,
                          uint64_t object, int32_t field)
{
	uint32_t narrow = 0;

	if (object == 0 || field < 0)
		return 0;
	if (!objects->has_narrow_oops)
		return in_heap(objects, java_read_word(memory, object + (uint64_t)field));
	if (!java_read(memory, object + (uint64_t)field, &narrow, sizeof(narrow)) || narrow == 0)
		return 0;
	return in_heap(objects, objects->oop_base + ((uint64_t)narrow << objects->oop_shift));
}

// Reads its class, whatever that may be.
static uint64_t read_class(const struct java_objects *objects, const struct java_memory *memory,
                           uint64_t object)
{
	uint64_t head[2];

	if (object == 0 || !java_read(memory, object, head, sizeof(head)))
		return 0;
	const uint64_t narrow =
	    objects->has_compact_heads ? head[0] >> COMPACT_CLASS_SHIFT : (uint32_t)head[1];
	if (!objects->has_narrow_classes && !objects->has_compact_heads)
		return head[1];
	return narrow ? objects->class_base + (narrow << objects->class_shift) : 0;
}

// Reads which classes it extends, itself included, from java.lang.Object on.
static bool read_supers(const struct java_objects *objects, const struct java_memory *memory,
                        uint64_t class, uint64_t ret[N_SUPERS])
{
	return class && class % WORD == 0 &&
	       java_read(memory, class + (uint64_t)objects->layout->class_supers, ret,
	                 N_SUPERS * sizeof(*ret));
}

static bool has_name(const struct java_objects *objects, const struct java_memory *memory,
                     uint64_t class, const char *name)
{
	char text[JAVA_SYMBOL_SIZE];

	return class && class % WORD == 0 &&
	       java_symbol_read(
	           objects->layout, memory,
	           java_read_word(memory, class + (uint64_t)objects->layout->klass_name), text) &&
	       strcmp(text, name) == 0;
}

// Returns the class, or its superclass directly below java.lang.Object, if that has the name; else
// 0.
static uint64_t find_class(struct java_objects *objects, const struct java_memory *memory,
                           uint64_t class, const char *name)
{
	uint64_t supers[N_SUPERS];

	if (!read_supers(objects, memory, class, supers) ||
	    (objects->object_class ? supers[0] != objects->object_class
	                           : !has_name(objects, memory, supers[0], "java/lang/Object")) ||
	    !has_name(objects, memory, supers[1], name))
		return 0;
	objects->object_class = supers[0];
	return supers[1];
}

static int32_t field(const struct java_objects *objects, const struct java_memory *memory,
                     uint64_t class, const char *name)
{
	return java_fields_find(objects->layout, memory, class, name);
}

// Finds java.lang.Thread and its fields.
static bool find_thread_class(struct java_objects *objects, const struct java_memory *memory,
                              uint64_t thread)
{
	struct java_fields *fields = &objects->fields;

	if (objects->thread_class)
		return true;
	if (objects->n_tries++ > MAX_TRIES)
		return false;
	const uint64_t class =
	    find_class(objects, memory, read_class(objects, memory, thread), "java/lang/Thread");
	if (!class)
		return false;
	fields->thread_blocker = field(objects, memory, class, "parkBlocker");
	fields->thread_name = field(objects, memory, class, "name");
	fields->thread_native = field(objects, memory, class, "eetop");
	if (!java_objects_hold(objects, memory))
		return false;
	objects->thread_class = class;
	return true;
}

bool java_objects_begin(struct java_objects *objects, const struct java_memory *memory,
                        uint64_t thread, uint64_t *ret_thread)
{
	ask(objects, memory);
	if (!objects->is_readable || !read_collections(objects, memory, &objects->collections))
		return false;
	*ret_thread = java_objects_of_handle(objects, memory, thread);
	return *ret_thread && find_thread_class(objects, memory, *ret_thread);
}

uint64_t java_objects_class(const struct java_objects *objects, const struct java_memory *memory,
                            uint64_t object)
{
	const uint64_t class = read_class(objects, memory, object);
	uint64_t supers[N_SUPERS];

	return read_supers(objects, memory, class, supers) && supers[0] == objects->object_class
	           ? class
	           : 0;
}

bool java_objects_is_synchronizer(struct java_objects *objects, const struct java_memory *memory,
                                  uint64_t class)
{
	static const char name[] = "java/util/concurrent/locks/AbstractOwnableSynchronizer";
	uint64_t supers[N_SUPERS];

	if (!objects->synchronizer_class) {
		const uint64_t found = find_class(objects, memory, class, name);
		if (!found)
			return false;
		objects->fields.owner = field(objects, memory, found, "exclusiveOwnerThread");
		objects->synchronizer_class = found;
	}
	return read_supers(objects, memory, class, supers) &&
	       supers[1] == objects->synchronizer_class;
}

char *java_objects_class_name(const struct java_objects *objects, const struct java_memory *memory,
                              uint64_t class)
{
	char text[JAVA_SYMBOL_SIZE];
	const uint64_t symbol =
	    class ? java_read_word(memory, class + (uint64_t)objects->layout->klass_name) : 0;

	return java_symbol_read(objects->layout, memory, symbol, text) ? java_name_class(text)
	                                                               : NULL;
}

// Where an array of bytes begins: after its class and its length, which has four bytes.
static uint64_t array_head(const struct java_objects *objects)
{
	if (objects->has_compact_heads)
		return WORD + sizeof(uint32_t);
	if (objects->has_narrow_classes)
		return CLASS_AT + 2 * sizeof(uint32_t);
	return CLASS_AT + WORD + (objects->layout->major < FIRST_DENSE ? WORD : sizeof(uint32_t));
}

static uint64_t length_at(const struct java_objects *objects)
{
	return objects->has_compact_heads    ? WORD
	       : objects->has_narrow_classes ? CLASS_AT + sizeof(uint32_t)
	                                     : CLASS_AT + WORD;
}

static bool find_string_class(struct java_objects *objects, const struct java_memory *memory,
                              uint64_t string)
{
	if (!objects->string_class) {
		const uint64_t class = find_class(
		    objects, memory, read_class(objects, memory, string), "java/lang/String");
		if (!class)
			return false;
		objects->fields.string_value = field(objects, memory, class, "value");
		objects->fields.string_coder = field(objects, memory, class, "coder");
		objects->string_class = class;
	}
	return read_class(objects, memory, string) == objects->string_class &&
	       objects->fields.string_value >= 0 && objects->fields.string_coder >= 0;
}

static size_t put_utf8(char *text, uint32_t c)
{
	if (c < 0x80) {
		text[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		text[0] = (char)(0xc0 | c >> 6);
		text[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		text[0] = (char)(0xe0 | c >> 12);
		text[1] = (char)(0x80 | (c >> 6 & 0x3f));
		text[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	text[0] = (char)(0xf0 | c >> 18);
	text[1] = (char)(0x80 | (c >> 12 & 0x3f));
	text[2] = (char)(0x80 | (c >> 6 & 0x3f));
	text[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

static char *from_latin1(const uint8_t *bytes, size_t n)
{
	char *text = memory_alloc(2 * n + 1), *end = text;

	for (size_t i = 0; i < n && bytes[i] != 0; i++)
		end += put_utf8(end, bytes[i]);
	*end = '\0';
	return text;
}

// Half of a pair of surrogates is shown as the replacement character.
static char *from_utf16(const uint8_t *bytes, size_t n)
{
	const uint32_t unknown = 0xfffd;
	char *text = memory_alloc(2 * n + 1), *end = text;

	for (size_t i = 0; i + 1 < n; i += 2) {
		uint32_t c = bytes[i] | (uint32_t)bytes[i + 1] << 8;
		const uint32_t next = i + 3 < n ? bytes[i + 2] | (uint32_t)bytes[i + 3] << 8 : 0;
		if (c == 0)
			break;
		if (c >> 10 == 0x36 && next >> 10 == 0x37) {
			c = 0x10000 + ((c & 0x3ff) << 10) + (next & 0x3ff);
			i += 2;
		} else if (c >> 11 == 0x1b) {
			c = unknown;
		}
		end += put_utf8(end, c);
	}
	*end = '\0';
	return text;
}

char *java_objects_string(struct java_objects *objects, const struct java_memory *memory,
                          uint64_t string)
{
	uint8_t bytes[MAX_STRING_BYTES], coder;
	uint32_t length;

	if (!string || !find_string_class(objects, memory, string))
		return NULL;
	const uint64_t array =
	    java_objects_get(objects, memory, string, objects->fields.string_value);
	if (!array ||
	    !java_read(memory, string + (uint64_t)objects->fields.string_coder, &coder, 1) ||
	    coder > 1 || !java_objects_class(objects, memory, array) ||
	    !java_read(memory, array + length_at(objects), &length, sizeof(length)) || length == 0)
		return NULL;
	const size_t n = length < sizeof(bytes) ? length : sizeof(bytes);
	if (!java_read(memory, array + array_head(objects), bytes, n))
		return NULL;
	return coder == 0 ? from_latin1(bytes, n) : from_utf16(bytes, n);
}

// A profile of pprof's (any profiler's) as a page's tree. It has no time, only sums: each place in
// the tree is one run, as of folded stacks.
//
// The format: proto/profile.proto of github.com/google/pprof. A consumer shows the value that
// default_sample_type names, or else the last one.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "error.h"
#include "memory.h"
#include "page.h"
#include "text.h"

enum {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_FIXED32 = 5,
	MAX_SHIFT = 63,
	MAX_DEPTH = 100000,  // frames of a stack; what is further in is left out
	MAX_STEPS = 1 << 28, // frames of all stacks
	MAX_NAME_BYTES = 1 << 20,
	MAX_UNIT_BYTES = 32,
};

// Fields of the messages.
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_DEFAULT_TYPE = 14,
	TYPE_TYPE = 1,
	TYPE_UNIT = 2,
	SAMPLE_LOCATION = 1,
	SAMPLE_VALUE = 2,
	MAPPING_ID = 1,
	MAPPING_FILE = 5,
	LOCATION_ID = 1,
	LOCATION_MAPPING = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,
	LINE_FUNCTION = 1,
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_FILE = 4,
	FUNCTION_LINE = 5,
};

struct cursor {
	const uint8_t *at, *end;
	bool failed;
};

struct field {
	uint64_t number, wire, value;
	struct cursor bytes; // of a message, a string or packed numbers
};

// What is looked up by its id; which fields it has depends on the kind.
struct item {
	uint64_t id;
	uint64_t name, file, line; // of a function; a mapping has a file; a location its mapping,
	                           // address and...
	size_t first, n_frames;    // ...frames, innermost first
	struct cursor bytes;
};

struct items {
	struct item *items;
	size_t count, capacity;
};

struct reader {
	struct page *page;
	struct items strings, types, mappings, locations, functions;
	uint32_t *frames; // of all locations
	size_t n_frames, frames_capacity;
	uint32_t *path; // of a sample
	size_t path_capacity;
	uint64_t default_type;
	size_t value; // which one of a sample's is shown
	int64_t scale_ns;
	uint64_t n_steps, n_left_out;
	const char *failure;
};

static uint64_t take_varint(struct cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift <= MAX_SHIFT && cursor->at < cursor->end; shift += 7) {
		const uint8_t byte = *cursor->at++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	cursor->failed = true;
	return 0;
}

static struct cursor take_bytes(struct cursor *cursor, uint64_t size)
{
	const uint8_t *start = cursor->at;

	if (size > (uint64_t)(cursor->end - start)) {
		cursor->failed = true;
		return (struct cursor){start, start, true};
	}
	cursor->at += size;
	return (struct cursor){start, cursor->at, false};
}

// False at the end, or at what is no message.
static bool next_field(struct cursor *cursor, struct field *ret)
{
	if (cursor->at == cursor->end || cursor->failed)
		return false;
	const uint64_t key = take_varint(cursor);
	*ret = (struct field){.number = key >> 3, .wire = key & 7};
	if (ret->wire == WIRE_VARINT)
		ret->value = take_varint(cursor);
	else if (ret->wire == WIRE_BYTES)
		ret->bytes = take_bytes(cursor, take_varint(cursor));
	else if (ret->wire == WIRE_FIXED64 || ret->wire == WIRE_FIXED32)
		take_bytes(cursor, ret->wire == WIRE_FIXED64 ? 8 : 4);
	else
		cursor->failed = true;
	return !cursor->failed && ret->number != 0;
}

// The next of a repeated number, which is packed or stands alone. False: there are no more.
static bool next_number(struct field *field, uint64_t *ret)
{
	if (field->wire == WIRE_VARINT) {
		*ret = field->value;
		field->wire = WIRE_FIXED32; // it is taken
		return true;
	}
	if (field->wire != WIRE_BYTES || field->bytes.at == field->bytes.end)
		return false;
	*ret = take_varint(&field->bytes);
	return !field->bytes.failed;
}

static void fail(struct reader *reader, const char *why)
{
	reader->failure = reader->failure ?: why;
}

// Which number of the item a field is; NULL: none.
typedef uint64_t *place_fn(struct item *item, uint64_t field);

static uint64_t *place_in_type(struct item *item, uint64_t field)
{
	return field == TYPE_TYPE ? &item->name : field == TYPE_UNIT ? &item->file : NULL;
}

static uint64_t *place_in_mapping(struct item *item, uint64_t field)
{
	return field == MAPPING_ID ? &item->id : field == MAPPING_FILE ? &item->file : NULL;
}

static uint64_t *place_in_location(struct item *item, uint64_t field)
{
	return field == LOCATION_ID        ? &item->id
	       : field == LOCATION_MAPPING ? &item->file
	       : field == LOCATION_ADDRESS ? &item->line
	                                   : NULL;
}

static uint64_t *place_in_function(struct item *item, uint64_t field)
{
	return field == FUNCTION_ID     ? &item->id
	       : field == FUNCTION_NAME ? &item->name
	       : field == FUNCTION_FILE ? &item->file
	       : field == FUNCTION_LINE ? &item->line
	                                : NULL;
}

static void add_item(struct reader *reader, struct items *items, struct cursor bytes,
                     place_fn *place)
{
	struct item item = {.bytes = bytes};
	struct field field;

	while (place && next_field(&bytes, &field)) {
		uint64_t *number = field.wire == WIRE_VARINT ? place(&item, field.number) : NULL;
		if (number)
			*number = field.value;
	}
	if (bytes.failed)
		fail(reader, "a message in it is cut");
	*array_push(items->items, items->count, items->capacity) = item;
}

// Everything but the samples, which may come before it.
static void read_tables(struct reader *reader, struct cursor bytes)
{
	struct field field;

	while (next_field(&bytes, &field)) {
		if (field.number == PROFILE_DEFAULT_TYPE && field.wire == WIRE_VARINT)
			reader->default_type = field.value;
		if (field.wire != WIRE_BYTES)
			continue;
		if (field.number == PROFILE_STRING)
			add_item(reader, &reader->strings, field.bytes, NULL);
		else if (field.number == PROFILE_SAMPLE_TYPE)
			add_item(reader, &reader->types, field.bytes, place_in_type);
		else if (field.number == PROFILE_MAPPING)
			add_item(reader, &reader->mappings, field.bytes, place_in_mapping);
		else if (field.number == PROFILE_LOCATION)
			add_item(reader, &reader->locations, field.bytes, place_in_location);
		else if (field.number == PROFILE_FUNCTION)
			add_item(reader, &reader->functions, field.bytes, place_in_function);
	}
	if (bytes.failed || bytes.at != bytes.end)
		fail(reader, "it is cut, or no message of protobuf's");
	if (reader->types.count == 0 || reader->strings.count == 0)
		fail(reader, "it has no type of samples, or no strings");
}

static int compare_ids(const void *a_pointer, const void *b_pointer)
{
	const struct item *a = a_pointer, *b = b_pointer;

	return (a->id > b->id) - (a->id < b->id);
}

static void sort_items(struct items *items)
{
	if (items->count > 0)
		qsort(items->items, items->count, sizeof(*items->items), compare_ids);
}

static const struct item *find_item(const struct items *items, uint64_t id)
{
	const struct item key = {.id = id};

	if (id - 1 < items->count && items->items[id - 1].id == id) // as most writers number them
		return &items->items[id - 1];
	return items->count ? bsearch(&key, items->items, items->count, sizeof(key), compare_ids)
	                    : NULL;
}

// Clean text, owned by the caller; "": there is no such string.
static char *string_of(const struct reader *reader, uint64_t index)
{
	if (index >= reader->strings.count)
		return memory_strdup("");
	const struct cursor *bytes = &reader->strings.items[index].bytes;
	return text_clean((const char *)bytes->at, (size_t)(bytes->end - bytes->at),
	                  MAX_NAME_BYTES);
}

static uint32_t intern(struct string_table *table, const struct reader *reader, uint64_t index)
{
	_cleanup_free_ char *text = string_of(reader, index);

	return string_table_intern(table, text);
}

static void add_frame(struct reader *reader, const struct item *location,
                      const struct item *function, uint32_t flags)
{
	struct page_tree *tree = &reader->page->tree;
	const struct item *mapping = find_item(&reader->mappings, location->file);
	_cleanup_free_ char *module = string_of(reader, mapping ? mapping->file : 0);
	_cleanup_free_ char *name = string_of(reader, function ? function->name : 0);
	const char *slash = strrchr(module, '/');

	if (!name[0]) {
		free(name);
		name = memory_printf("[%s%s0x%" PRIx64 "]", slash ? slash + 1 : module,
		                     module[0] ? "+" : "", location->line);
	}
	const struct page_frame frame = {
	    .name = string_table_intern(&tree->names, name),
	    .file = intern(&tree->files, reader, function ? function->file : 0),
	    .module = string_table_intern(&tree->modules, module),
	    .line = function && function->line <= INT32_MAX ? (uint32_t)function->line : 0,
	    .flags = flags,
	};
	*array_push(reader->frames, reader->n_frames, reader->frames_capacity) =
	    page_tree_frame(tree, &frame);
}

// A location's lines: those that were inlined into the last one come before it.
static void add_frames(struct reader *reader, struct item *location)
{
	struct cursor bytes = location->bytes;
	struct field field, part;
	const struct item *last = NULL;
	bool has_lines = false;

	location->first = reader->n_frames;
	while (next_field(&bytes, &field)) {
		uint64_t id = 0;
		if (field.number != LOCATION_LINE || field.wire != WIRE_BYTES)
			continue;
		while (next_field(&field.bytes, &part))
			id = part.number == LINE_FUNCTION && part.wire == WIRE_VARINT ? part.value
			                                                              : id;
		if (has_lines)
			add_frame(reader, location, last, PAGE_INLINED);
		last = find_item(&reader->functions, id);
		has_lines = true;
	}
	add_frame(reader, location, last, 0);
	location->n_frames = reader->n_frames - location->first;
}

static bool is_string(const struct reader *reader, uint64_t index, const char *text)
{
	_cleanup_free_ char *string = string_of(reader, index);

	return strcmp(string, text) == 0;
}

// The value that is shown, and what it counts.
static void choose_value(struct reader *reader)
{
	static const struct {
		const char *unit;
		int64_t ns;
	} units[] = {
	    {"nanoseconds", 1},
	    {"microseconds", 1000},
	    {"milliseconds", NS_PER_MS},
	    {"seconds", NS_PER_SECOND},
	};
	const struct items *types = &reader->types;
	struct page *page = reader->page;

	reader->value = types->count - 1;
	for (size_t i = 0; i < types->count && reader->default_type != 0; i++)
		if (types->items[i].name == reader->default_type)
			reader->value = i;
	const struct item *type = &types->items[reader->value];
	reader->scale_ns = page->count_ns = PAGE_UNIT_NS;
	for (size_t i = 0; i < array_size(units); i++)
		if (is_string(reader, type->file, units[i].unit)) {
			reader->scale_ns = units[i].ns;
			page->count_ns = NS_PER_SECOND;
			page->unit = memory_strdup("seconds");
		}
	if (page->unit)
		return;
	// "count" says less than what is counted.
	const uint64_t text = is_string(reader, type->file, "count") ? type->name : type->file;
	_cleanup_free_ char *unit = string_of(reader, text);
	page->unit = text_clean(unit, strlen(unit), MAX_UNIT_BYTES);
}

static uint32_t add_stack(struct reader *reader, size_t n_locations)
{
	struct page_tree *tree = &reader->page->tree;
	uint32_t node = PAGE_ROOT;
	size_t depth = 0;

	for (size_t i = n_locations; i-- > 0 && depth < MAX_DEPTH;) {
		const struct item *location = &reader->locations.items[reader->path[i]];
		for (size_t j = location->n_frames; j-- > 0 && depth < MAX_DEPTH; depth++)
			node = page_tree_child(tree, node, reader->frames[location->first + j]);
	}
	if (depth == MAX_DEPTH)
		node = page_add_cut(reader->page, node, MAX_DEPTH);
	reader->n_steps += depth + 1;
	if (reader->n_steps > MAX_STEPS)
		fail(reader, "it is too large");
	return node;
}

static void add_sample(struct reader *reader, struct cursor bytes)
{
	size_t n_locations = 0, n_values = 0;
	int64_t value = 0;
	struct field field;
	uint64_t number;

	while (next_field(&bytes, &field)) {
		while (field.number == SAMPLE_VALUE && next_number(&field, &number))
			if (n_values++ == reader->value)
				value = (int64_t)number;
		while (field.number == SAMPLE_LOCATION && next_number(&field, &number)) {
			const struct item *location = find_item(&reader->locations, number);
			if (!location)
				continue;
			*array_push(reader->path, n_locations, reader->path_capacity) =
			    (uint32_t)(location - reader->locations.items);
		}
	}
	if (bytes.failed)
		fail(reader, "a sample in it is cut");
	reader->n_left_out += value < 0;
	if (value <= 0)
		return;
	page_add_self(reader->page, add_stack(reader, n_locations), value, reader->scale_ns);
}

static void read_samples(struct reader *reader, struct cursor bytes)
{
	struct field field;

	while (!reader->failure && next_field(&bytes, &field))
		if (field.number == PROFILE_SAMPLE && field.wire == WIRE_BYTES)
			add_sample(reader, field.bytes);
}

static void read_all(struct reader *reader, struct cursor bytes)
{
	read_tables(reader, bytes);
	if (reader->failure)
		return;
	sort_items(&reader->mappings);
	sort_items(&reader->functions);
	sort_items(&reader->locations);
	for (size_t i = 0; i < reader->locations.count; i++)
		add_frames(reader, &reader->locations.items[i]);
	choose_value(reader);
	read_samples(reader, bytes);
	page_add_self_runs(reader->page);
	if (reader->page->n_runs == 0)
		fail(reader, "it has no samples");
}

struct error *page_add_pprof(struct page *page, const uint8_t *bytes, size_t size,
                             uint64_t *ret_left_out)
{
	struct reader reader = {.page = page};

	read_all(&reader, (struct cursor){bytes, bytes + size, false});
	free(reader.strings.items);
	free(reader.types.items);
	free(reader.mappings.items);
	free(reader.locations.items);
	free(reader.functions.items);
	free(reader.frames);
	free(reader.path);
	if (reader.failure)
		return error_create(EXIT_STATUS_TARGET, "no profile of pprof's: %s",
		                    reader.failure);
	*ret_left_out = reader.n_left_out;
	return NULL;
}

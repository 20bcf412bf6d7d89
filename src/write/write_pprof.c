// SPDX-License-Identifier: MIT
// The pprof format (https://github.com/google/pprof/blob/main/proto/profile.proto), gzipped.
//
// The message is never held as a whole. First come the samples, which number the locations that
// they use; then those locations, which number functions and mappings; then these; then the strings
// that all of them named. So only what the selection left in is written, and all ids are 1..n in
// the order of the file.
#include "writer.h"

#include <stdlib.h>
#include <string.h>

#include "frame_name.h"
#include "gzip.h"
#include "hash.h"
#include "labels.h"
#include "language_text.h"
#include "memory.h"
#include "time_point.h"
#include "module.h"
#include "pprof_fields.h"
#include "profile.h"
#include "protobuf.h"
#include "sample_kind.h"
#include "string_table.h"
#include "symbolize.h"
#include "syscall_name.h"

#define NO_LOCATION UINT32_MAX

// A location of the file; ids are positions + 1, here and below.
struct pprof_location {
	uint32_t location; // of the profile; NO_LOCATION: a frame that the profiler names
	uint32_t name;     // string: that name
};

struct pprof_function {
	uint32_t name, system_name, file; // strings
	uint32_t start_line;
};

struct pprof_mapping {
	const struct module *module;
	const struct module_mapping *mapping;
	bool has_files, has_lines, has_inlines;
};

struct pprof {
	const struct report *report;
	struct sample_kinds kinds;
	struct gzip gzip;
	struct protobuf message, part, packed; // buffers of the current message and its parts

	struct sample *sums; // samples of like tasks, added up
	size_t n_sums, sums_capacity;
	struct hash_index sum_index;
	struct string_table strings;
	struct pprof_location *locations;
	size_t n_locations, locations_capacity;
	uint32_t *location_ids;            // by the profile's location; 0: none yet
	struct hash_index frame_locations; // of the frames that the profiler names, by name
	struct pprof_function *functions;
	size_t n_functions, functions_capacity;
	struct hash_index function_index;
	struct pprof_mapping *mappings;
	size_t n_mappings, mappings_capacity;
	uint32_t *mapping_ids; // by mapping, module after module; 0: none yet
	size_t *module_first;  // by module: its place in mapping_ids
};

static uint32_t string(struct pprof *pprof, const char *text)
{
	return string_table_intern_clean(&pprof->strings, text);
}

// Writes the message in pprof->message to the file.
static void put_message(struct pprof *pprof, uint32_t field)
{
	protobuf_clear(&pprof->part);
	protobuf_message(&pprof->part, field, &pprof->message);
	gzip_write(&pprof->gzip, pprof->part.bytes, pprof->part.size);
	protobuf_clear(&pprof->message);
}

static void put_int(struct pprof *pprof, uint32_t field, uint64_t value)
{
	protobuf_clear(&pprof->part);
	protobuf_int(&pprof->part, field, value);
	gzip_write(&pprof->gzip, pprof->part.bytes, pprof->part.size);
}

static void put_value_type(struct pprof *pprof, uint32_t field, const char *type, const char *unit)
{
	protobuf_int(&pprof->message, VALUE_TYPE_TYPE, string(pprof, type));
	protobuf_int(&pprof->message, VALUE_TYPE_UNIT, string(pprof, unit));
	put_message(pprof, field);
}

static void put_header(struct pprof *pprof)
{
	static const char shares[] =
	    "Each tick takes one sample of every thread. The kernel's own count of its time on a "
	    "CPU "
	    "and of its waits for one divides each thread's time, and the samples of a state share "
	    "that state's time equally.";
	const struct report *report = pprof->report;

	put_value_type(pprof, PROFILE_SAMPLE_TYPE, "samples", "count");
	put_value_type(pprof, PROFILE_SAMPLE_TYPE, "cpu", "nanoseconds");
	put_value_type(pprof, PROFILE_SAMPLE_TYPE, "wall", "nanoseconds");
	put_int(pprof, PROFILE_DEFAULT_SAMPLE_TYPE, string(pprof, "wall"));
	put_value_type(pprof, PROFILE_PERIOD_TYPE, "wall", "nanoseconds");
	put_int(pprof, PROFILE_PERIOD, report->profile->period_ns);
	put_int(pprof, PROFILE_TIME_NANOS, report->profile->start_time_ns);
	put_int(pprof, PROFILE_DURATION_NANOS, report->profile->duration_ns);
	for (const char *const *comment = report->comments; comment && *comment; comment++)
		put_int(pprof, PROFILE_COMMENT, string(pprof, *comment));
	put_int(pprof, PROFILE_COMMENT, string(pprof, shares));
}

static uint32_t add_location(struct pprof *pprof, uint32_t location, uint32_t name)
{
	*array_push(pprof->locations, pprof->n_locations, pprof->locations_capacity) =
	    (struct pprof_location){.location = location, .name = name};
	return pprof->n_locations;
}

static uint32_t location_id(struct pprof *pprof, uint32_t location)
{
	uint32_t *id = &pprof->location_ids[location];

	if (*id == 0)
		*id = add_location(pprof, location, 0);
	return *id;
}

static bool frame_equal(const void *context, uint32_t id, const void *key)
{
	const struct pprof *pprof = context;

	return pprof->locations[id - 1].name == *(const uint32_t *)key;
}

// Returns the location of a frame that has only a name; adds it if it is new.
static uint32_t frame_location_id(struct pprof *pprof, const char *text)
{
	const uint32_t name = string(pprof, text);
	const uint64_t hash = hash_mix(name, 0);
	uint32_t id = hash_index_find(&pprof->frame_locations, hash, frame_equal, pprof, &name);

	if (id == HASH_NONE) {
		id = add_location(pprof, NO_LOCATION, name);
		hash_index_insert(&pprof->frame_locations, hash, id);
	}
	return id;
}

static void build_wait_locations(struct pprof *pprof, const struct sample *sample)
{
	const struct report *report = pprof->report;

	const uint32_t wait = sample_leaf_wait(report->profile, sample);

	for (size_t i = 0; wait != WAIT_NONE; i++) {
		_cleanup_free_ char *name =
		    frame_name_wait(&report->profile->waits[wait], report->syscalls, i);
		if (!name)
			return;
		protobuf_varint(&pprof->packed, frame_location_id(pprof, name));
	}
}

// Those of the labels that are root frames, the outermost last.
static void build_label_locations(struct pprof *pprof, const struct sample *sample)
{
	const struct report *report = pprof->report;
	size_t n = 0;

	if (sample->labels == LABELS_NONE || !report->label_frames)
		return;
	while (report->label_frames[n])
		n++;
	while (n-- > 0) {
		_cleanup_free_ char *name = frame_name_label(
		    report->profile->labels[sample->labels], report->label_frames[n]);
		if (name)
			protobuf_varint(&pprof->packed, frame_location_id(pprof, name));
	}
}

// Adds the sample's locations, leaf first as everywhere: what the thread waits in, the stack, why
// the stack is not whole, labels, the thread, the process.
static void build_sample_locations(struct pprof *pprof, const struct sample *sample)
{
	const struct profile *profile = pprof->report->profile;
	const struct stack *stack = &profile->stacks[sample->stack];
	const struct thread *thread = &profile->threads[sample->thread];
	const enum stack_end end = frame_name_stack_end(stack);

	protobuf_clear(&pprof->packed);
	build_wait_locations(pprof, sample);
	for (uint32_t i = 0; i < stack->n_frames; i++)
		protobuf_varint(&pprof->packed,
		                location_id(pprof, profile->location_ids[stack->first + i]));
	if (end != STACK_COMPLETE) {
		_cleanup_free_ char *name = frame_name_truncated(end);
		protobuf_varint(&pprof->packed, frame_location_id(pprof, name));
	}
	build_label_locations(pprof, sample);
	if (pprof->report->thread_roots)
		protobuf_varint(&pprof->packed,
		                frame_location_id(pprof, frame_name_thread(thread)));
	if (pprof->report->process_roots) {
		_cleanup_free_ char *name = frame_name_process(profile, thread);
		protobuf_varint(&pprof->packed, frame_location_id(pprof, name));
	}
	protobuf_message(&pprof->message, SAMPLE_LOCATION_ID, &pprof->packed);
}

// Adds a label with a text, or, if `text` is NULL, with a number. The number must not be 0: without
// a unit such a label is lost when it is read.
static void build_label(struct pprof *pprof, const char *key, const char *text, uint64_t number)
{
	protobuf_clear(&pprof->part);
	protobuf_int(&pprof->part, LABEL_KEY, string(pprof, key));
	if (text)
		protobuf_int(&pprof->part, LABEL_STR, string(pprof, text));
	else
		protobuf_int(&pprof->part, LABEL_NUM, number);
	protobuf_message(&pprof->message, SAMPLE_LABEL, &pprof->part);
}

static void build_wait_labels(struct pprof *pprof, const struct wait *wait)
{
	const char *descriptor = frame_name_descriptor(wait);

	if (wait->syscall != NO_SYSCALL) {
		_cleanup_free_ char *name = syscall_name(wait->syscall);
		build_label(pprof, "syscall", name, 0);
	}
	if (wait->reason[0])
		build_label(pprof, "wait", wait->reason, 0);
	if (descriptor[0])
		build_label(pprof, "descriptor", descriptor, 0);
}

static void build_since_label(struct pprof *pprof, int64_t since_ns)
{
	const struct profile *profile = pprof->report->profile;
	char text[TIME_POINT_TEXT_SIZE];

	time_point_format(profile->start_time_ns + since_ns - profile->start_ns, false, text);
	build_label(pprof, "since", text, 0);
}

static void build_own_labels(struct pprof *pprof, const char *labels)
{
	struct label label = {0};

	while (labels_next(&labels, &label))
		build_label(pprof, label.key, label.value, 0);
}

static void put_sample(struct pprof *pprof, const struct sample *sample)
{
	const struct thread *thread = &pprof->report->profile->threads[sample->thread];

	build_sample_locations(pprof, sample);
	protobuf_clear(&pprof->packed);
	protobuf_varint(&pprof->packed, sample->count);
	protobuf_varint(&pprof->packed, sample->cpu_ns);
	protobuf_varint(&pprof->packed, sample->wall_ns);
	protobuf_message(&pprof->message, SAMPLE_VALUE, &pprof->packed);
	build_label(pprof, "pid", NULL, thread->pid);
	if (pprof->report->process_roots)
		build_label(pprof, "process", profile_process_of(pprof->report->profile, thread),
		            0);
	if (!thread->is_task)
		build_label(pprof, "tid", NULL, thread->tid);
	else if (thread->task_id && pprof->report->task_ids)
		build_label(pprof, language_task_words()->id, NULL, thread->task_id);
	build_label(pprof, "thread", thread->name, 0);
	build_label(pprof, "state", thread_state_name(sample->state), 0);
	build_label(pprof, "kind", wait_kind_name(sample_kind(&pprof->kinds, sample)), 0);
	if (sample->wait != WAIT_NONE)
		build_wait_labels(pprof, &pprof->report->profile->waits[sample->wait]);
	if (sample->is_one_wait)
		build_since_label(pprof, sample->since_ns);
	if (sample->labels != LABELS_NONE)
		build_own_labels(pprof, pprof->report->profile->labels[sample->labels]);
	const char *guess = frame_name_guess(&pprof->report->profile->stacks[sample->stack]);
	if (guess)
		build_label(pprof, "unwound", guess, 0);
	put_message(pprof, PROFILE_SAMPLE);
}

// True if all that is written of two tasks is the same.
static bool sum_equal(const void *context, uint32_t id, const void *key)
{
	const struct pprof *pprof = context;
	const struct thread *threads = pprof->report->profile->threads;
	const struct sample *a = &pprof->sums[id], *b = key;

	return a->stack == b->stack && a->state == b->state && a->wait == b->wait &&
	       a->labels == b->labels && threads[a->thread].pid == threads[b->thread].pid &&
	       strcmp(threads[a->thread].name, threads[b->thread].name) == 0;
}

// Adds a task's sample to the sum of those that are alike.
static void add_up(struct pprof *pprof, const struct sample *sample)
{
	const char *name = pprof->report->profile->threads[sample->thread].name;
	const uint64_t hash = hash_mix(hash_mix((uint64_t)sample->stack << 32 | sample->wait,
	                                        (uint64_t)sample->labels << 8 | sample->state),
	                               hash_bytes(name, strlen(name)));
	const uint32_t id = hash_index_find(&pprof->sum_index, hash, sum_equal, pprof, sample);

	if (id == HASH_NONE) {
		hash_index_insert(&pprof->sum_index, hash, pprof->n_sums);
		*array_push(pprof->sums, pprof->n_sums, pprof->sums_capacity) = *sample;
		return;
	}
	pprof->sums[id].count += sample->count;
	pprof->sums[id].wall_ns += sample->wall_ns;
	pprof->sums[id].cpu_ns += sample->cpu_ns;
}

static void put_samples(struct pprof *pprof, FILE *stream)
{
	const struct report *report = pprof->report;
	const struct profile *profile = report->profile;

	for (size_t i = 0; i < profile->n_samples && !ferror(stream); i++) {
		const struct sample *sample = &profile->samples[i];
		if (report->selected && !report->selected[i])
			continue;
		if (profile->threads[sample->thread].is_task && !report->task_ids)
			add_up(pprof, sample);
		else
			put_sample(pprof, sample);
	}
	for (size_t i = 0; i < pprof->n_sums && !ferror(stream); i++)
		put_sample(pprof, &pprof->sums[i]);
}

static bool function_equal(const void *context, uint32_t id, const void *key)
{
	const struct pprof *pprof = context;
	const struct pprof_function *a = &pprof->functions[id - 1], *b = key;

	return a->name == b->name && a->system_name == b->system_name && a->file == b->file &&
	       a->start_line == b->start_line;
}

static uint32_t add_function(struct pprof *pprof, const struct pprof_function *function)
{
	const uint64_t hash = hash_mix((uint64_t)function->name << 32 | function->system_name,
	                               (uint64_t)function->file << 32 | function->start_line);
	uint32_t id =
	    hash_index_find(&pprof->function_index, hash, function_equal, pprof, function);

	if (id != HASH_NONE)
		return id;
	*array_push(pprof->functions, pprof->n_functions, pprof->functions_capacity) = *function;
	id = pprof->n_functions;
	hash_index_insert(&pprof->function_index, hash, id);
	return id;
}

static uint32_t symbol_function_id(struct pprof *pprof, const struct function *function)
{
	const char *system_name = function->system_name ? function->system_name : "";

	// pprof takes a name that equals its system name for a raw one, and strips what looks like
	// parameters from it (pprof internal/symbolizer, demangleSingleFunction).
	if (strcmp(function->name, system_name) == 0 && strpbrk(system_name, "()<>[]"))
		system_name = "";
	return add_function(pprof, &(struct pprof_function){
	                               .name = string(pprof, function->name),
	                               .system_name = string(pprof, system_name),
	                               .file = string(pprof, function->file ? function->file : ""),
	                               .start_line = function->start_line,
	                           });
}

// Returns the function of a frame that the profiler names. Without a system name, pprof takes its
// name as it is.
static uint32_t named_function_id(struct pprof *pprof, uint32_t name)
{
	return add_function(pprof, &(struct pprof_function){.name = name});
}

static uint32_t mapping_id(struct pprof *pprof, uint32_t module, size_t i)
{
	uint32_t *id = &pprof->mapping_ids[pprof->module_first[module] + i];
	const struct module *item = pprof->report->modules->items[module];

	if (*id == 0) {
		*array_push(pprof->mappings, pprof->n_mappings, pprof->mappings_capacity) =
		    (struct pprof_mapping){.module = item, .mapping = &item->mappings[i]};
		*id = pprof->n_mappings;
	}
	return *id;
}

// Returns the mapping that holds the location, and in *ret_address its address there; or 0 and the
// address as it stands, if there is none (MODULE_UNKNOWN).
static uint32_t location_mapping(struct pprof *pprof, const struct location *location,
                                 uint64_t *ret_address)
{
	const struct module *module = pprof->report->modules->items[location->module];

	for (size_t i = 0; i < module->n_mappings; i++) {
		const struct module_mapping *mapping = &module->mappings[i];
		const uint64_t address = location->address + mapping->bias;
		if (address >= mapping->start && address < mapping->end) {
			*ret_address = address;
			return mapping_id(pprof, location->module, i);
		}
	}
	*ret_address = location->address;
	return 0;
}

static void build_line(struct pprof *pprof, uint32_t function_id, uint32_t line)
{
	protobuf_clear(&pprof->part);
	protobuf_int(&pprof->part, LINE_FUNCTION_ID, function_id);
	protobuf_int(&pprof->part, LINE_LINE, line);
	protobuf_message(&pprof->message, LOCATION_LINE, &pprof->part);
}

static void build_symbol_lines(struct pprof *pprof, const struct location_lines *lines,
                               struct pprof_mapping *mapping)
{
	const struct symbols *symbols = pprof->report->symbols;

	for (uint32_t i = 0; i < lines->count; i++) {
		const struct line *line = &symbols->lines[lines->first + i];
		const struct function *function = &symbols->functions[line->function];

		build_line(pprof, symbol_function_id(pprof, function), line->line);
		if (mapping) {
			mapping->has_files |= function->file && function->file[0] != '\0';
			mapping->has_lines |= line->line != 0;
			mapping->has_inlines |= lines->count > 1;
		}
	}
}

static void build_sampled_location(struct pprof *pprof, uint32_t id)
{
	const struct report *report = pprof->report;
	const struct location *location = &report->profile->locations[id];
	const struct location_lines *lines = &report->symbols->locations[id];
	uint64_t address;
	const uint32_t mapping = location_mapping(pprof, location, &address);

	protobuf_int(&pprof->message, LOCATION_MAPPING_ID, mapping);
	protobuf_int(&pprof->message, LOCATION_ADDRESS, address);
	if (lines->count > 0) {
		build_symbol_lines(pprof, lines, mapping ? &pprof->mappings[mapping - 1] : NULL);
		return;
	}
	// pprof would show a location without a name as [module], but speedscope drops it.
	_cleanup_free_ char *name =
	    frame_name_unresolved(report->modules->items[location->module], location->address);
	build_line(pprof, named_function_id(pprof, string(pprof, name)), 0);
}

static void put_locations(struct pprof *pprof)
{
	for (size_t i = 0; i < pprof->n_locations; i++) {
		const struct pprof_location *location = &pprof->locations[i];

		protobuf_int(&pprof->message, LOCATION_ID, i + 1);
		if (location->location == NO_LOCATION)
			build_line(pprof, named_function_id(pprof, location->name), 0);
		else
			build_sampled_location(pprof, location->location);
		put_message(pprof, PROFILE_LOCATION);
	}
}

static void put_functions(struct pprof *pprof)
{
	for (size_t i = 0; i < pprof->n_functions; i++) {
		const struct pprof_function *function = &pprof->functions[i];

		protobuf_int(&pprof->message, FUNCTION_ID, i + 1);
		protobuf_int(&pprof->message, FUNCTION_NAME, function->name);
		protobuf_int(&pprof->message, FUNCTION_SYSTEM_NAME, function->system_name);
		protobuf_int(&pprof->message, FUNCTION_FILENAME, function->file);
		protobuf_int(&pprof->message, FUNCTION_START_LINE, function->start_line);
		put_message(pprof, PROFILE_FUNCTION);
	}
}

static uint32_t build_id_string(struct pprof *pprof, const struct module *module)
{
	static const char digits[] = "0123456789abcdef";
	char hex[2 * MODULE_MAX_BUILD_ID + 1];
	size_t n = 0;

	for (size_t i = 0; i < module->build_id_size && i < MODULE_MAX_BUILD_ID; i++) {
		hex[n++] = digits[module->build_id[i] >> 4];
		hex[n++] = digits[module->build_id[i] & 0xf];
	}
	hex[n] = '\0';
	return string(pprof, hex);
}

static void put_mappings(struct pprof *pprof)
{
	for (size_t i = 0; i < pprof->n_mappings; i++) {
		const struct pprof_mapping *mapping = &pprof->mappings[i];
		struct protobuf *message = &pprof->message;

		protobuf_int(message, MAPPING_ID, i + 1);
		protobuf_int(message, MAPPING_MEMORY_START, mapping->mapping->start);
		protobuf_int(message, MAPPING_MEMORY_LIMIT, mapping->mapping->end);
		protobuf_int(message, MAPPING_FILE_OFFSET, mapping->mapping->file_offset);
		protobuf_int(message, MAPPING_FILENAME, string(pprof, mapping->module->path));
		protobuf_int(message, MAPPING_BUILD_ID, build_id_string(pprof, mapping->module));
		// Says that all locations have names: else pprof would make up others.
		protobuf_int(message, MAPPING_HAS_FUNCTIONS, true);
		protobuf_int(message, MAPPING_HAS_FILENAMES, mapping->has_files);
		protobuf_int(message, MAPPING_HAS_LINE_NUMBERS, mapping->has_lines);
		protobuf_int(message, MAPPING_HAS_INLINE_FRAMES, mapping->has_inlines);
		put_message(pprof, PROFILE_MAPPING);
	}
}

static void put_strings(struct pprof *pprof)
{
	for (size_t i = 0; i < pprof->strings.count; i++) {
		protobuf_clear(&pprof->part);
		protobuf_string(&pprof->part, PROFILE_STRING_TABLE, pprof->strings.items[i]);
		gzip_write(&pprof->gzip, pprof->part.bytes, pprof->part.size);
	}
}

// Adds the program's own mapping first, as readers take the first one for it (pprof prints it as
// "File:").
static void add_main_mapping(struct pprof *pprof)
{
	const struct module *program = pprof->report->modules->program;

	if (program && program->n_mappings > 0)
		mapping_id(pprof, program->index, 0);
}

static void pprof_init(struct pprof *pprof)
{
	const struct modules *modules = pprof->report->modules;
	size_t n_mappings = 0;

	sample_kinds_init(&pprof->kinds, pprof->report->profile, pprof->report->symbols);
	pprof->module_first = memory_alloc_zeroed(modules->count, sizeof(*pprof->module_first));
	for (size_t i = 0; i < modules->count; i++) {
		pprof->module_first[i] = n_mappings;
		n_mappings += modules->items[i]->n_mappings;
	}
	pprof->mapping_ids = memory_alloc_zeroed(n_mappings, sizeof(*pprof->mapping_ids));
	pprof->location_ids =
	    memory_alloc_zeroed(pprof->report->profile->n_locations, sizeof(*pprof->location_ids));
	string(pprof, ""); // string_table[0] must be ""
	add_main_mapping(pprof);
}

static void pprof_deinit(struct pprof *pprof)
{
	gzip_deinit(&pprof->gzip);
	sample_kinds_deinit(&pprof->kinds);
	protobuf_deinit(&pprof->message);
	protobuf_deinit(&pprof->part);
	protobuf_deinit(&pprof->packed);
	string_table_deinit(&pprof->strings);
	free(pprof->locations);
	free(pprof->location_ids);
	hash_index_deinit(&pprof->frame_locations);
	free(pprof->functions);
	hash_index_deinit(&pprof->function_index);
	free(pprof->mappings);
	free(pprof->sums);
	hash_index_deinit(&pprof->sum_index);
	free(pprof->mapping_ids);
	free(pprof->module_first);
}

static struct error *write_pprof(const struct report *report, FILE *stream)
{
	_cleanup_free_ struct pprof *pprof = memory_alloc_zeroed(1, sizeof(*pprof));
	struct error *error = gzip_init(&pprof->gzip, stream);

	if (error)
		return error;
	pprof->report = report;
	pprof_init(pprof);
	put_header(pprof);
	put_samples(pprof, stream);
	put_locations(pprof);
	put_functions(pprof);
	put_mappings(pprof);
	put_strings(pprof);
	gzip_finish(&pprof->gzip);
	pprof_deinit(pprof);
	return NULL;
}

const struct writer writer_pprof = {
    .name = "pprof",
    .suffixes = (const char *const[]){".pb.gz", ".pb", ".pprof", NULL},
    .default_suffix = ".pb.gz",
    .binary = true,
    .next_command = "profiler view %s",
    .write = write_pprof,
};

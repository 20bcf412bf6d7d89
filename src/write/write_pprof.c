// SPDX-License-Identifier: MIT
// The pprof format, gzipped (pprof_encoder.h). Only what the selection left in is written.
#include "writer.h"

#include <stdlib.h>
#include <string.h>

#include "frame_name.h"
#include "hash.h"
#include "labels.h"
#include "language_text.h"
#include "memory.h"
#include "time_point.h"
#include "module.h"
#include "pprof_encoder.h"
#include "profile.h"
#include "sample_kind.h"
#include "symbolize.h"
#include "syscall_name.h"

// A mapping of the file; ids are positions + 1, as those of functions.
struct used_mapping {
	const struct module *module;
	const struct module_mapping *mapping;
	bool has_files, has_lines, has_inlines;
};

struct pprof {
	const struct report *report;
	struct sample_kinds kinds;
	struct pprof_encoder encoder;
	struct sample *sums; // samples of like tasks, added up
	size_t n_sums, sums_capacity;
	struct hash_index sum_index;
	// By the profile's location; after them by the name (string) of frames that the profiler
	// names.
	struct pprof_ids locations;
	struct pprof_function *functions;
	size_t n_functions, functions_capacity;
	struct hash_index function_index;
	struct used_mapping *mappings;
	size_t n_mappings, mappings_capacity;
	uint32_t *mapping_ids; // by mapping, module after module; 0: none yet
	size_t *module_first;  // by module: its place in mapping_ids
};

static void put_header(struct pprof *pprof)
{
	static const char shares[] =
	    "Each tick takes one sample of every thread. The kernel's own count of its time on a "
	    "CPU "
	    "and of its waits for one divides each thread's time, and the samples of a state share "
	    "that state's time equally.";
	const struct report *report = pprof->report;
	struct pprof_encoder *encoder = &pprof->encoder;

	pprof_put_type(encoder, PROFILE_SAMPLE_TYPE, "samples", "count");
	pprof_put_type(encoder, PROFILE_SAMPLE_TYPE, "cpu", "nanoseconds");
	pprof_put_type(encoder, PROFILE_SAMPLE_TYPE, "wall", "nanoseconds");
	pprof_put_int(encoder, PROFILE_DEFAULT_SAMPLE_TYPE, pprof_string(encoder, "wall"));
	pprof_put_type(encoder, PROFILE_PERIOD_TYPE, "wall", "nanoseconds");
	pprof_put_int(encoder, PROFILE_PERIOD, report->profile->period_ns);
	pprof_put_int(encoder, PROFILE_TIME_NANOS, report->profile->start_time_ns);
	pprof_put_int(encoder, PROFILE_DURATION_NANOS, report->profile->duration_ns);
	for (const char *const *comment = report->comments; comment && *comment; comment++)
		pprof_put_int(encoder, PROFILE_COMMENT, pprof_string(encoder, *comment));
	pprof_put_int(encoder, PROFILE_COMMENT, pprof_string(encoder, shares));
}

static void add_location(struct pprof *pprof, uint32_t location)
{
	protobuf_varint(&pprof->encoder.packed, pprof_id(&pprof->locations, location));
}

// Adds the location of a frame that has only a name.
static void add_frame(struct pprof *pprof, const char *name)
{
	const size_t position =
	    pprof->report->profile->n_locations + pprof_string(&pprof->encoder, name);

	protobuf_varint(&pprof->encoder.packed, pprof_id(&pprof->locations, position));
}

static void add_wait_locations(struct pprof *pprof, const struct sample *sample)
{
	const struct report *report = pprof->report;

	const uint32_t wait = sample_leaf_wait(report->profile, sample);

	for (size_t i = 0; wait != WAIT_NONE; i++) {
		_cleanup_free_ char *name =
		    frame_name_wait(&report->profile->waits[wait], report->syscalls, i);
		if (!name)
			return;
		add_frame(pprof, name);
	}
}

// Those of the labels that are root frames, the outermost last.
static void add_label_locations(struct pprof *pprof, const struct sample *sample)
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
			add_frame(pprof, name);
	}
}

// Adds the sample's locations, leaf first as everywhere: what the thread waits in, the stack, why
// the stack is not whole, labels, the thread, the process.
static void add_sample_locations(struct pprof *pprof, const struct sample *sample)
{
	const struct profile *profile = pprof->report->profile;
	const struct stack *stack = &profile->stacks[sample->stack];
	const struct thread *thread = &profile->threads[sample->thread];
	const enum stack_end end = frame_name_stack_end(stack);

	add_wait_locations(pprof, sample);
	for (uint32_t i = 0; i < stack->n_frames; i++)
		add_location(pprof, profile->location_ids[stack->first + i]);
	if (end != STACK_COMPLETE) {
		_cleanup_free_ char *name = frame_name_truncated(end);
		add_frame(pprof, name);
	}
	add_label_locations(pprof, sample);
	if (pprof->report->thread_roots)
		add_frame(pprof, frame_name_thread(thread));
	if (pprof->report->process_roots) {
		_cleanup_free_ char *name = frame_name_process(profile, thread);
		add_frame(pprof, name);
	}
	pprof_add_packed(&pprof->encoder, SAMPLE_LOCATION_ID);
}

static void add_label(struct pprof *pprof, const char *key, const char *text)
{
	pprof_add_label(&pprof->encoder, key, text, 0);
}

static void add_wait_labels(struct pprof *pprof, const struct wait *wait)
{
	const char *descriptor = frame_name_descriptor(wait);

	if (wait->syscall != NO_SYSCALL) {
		_cleanup_free_ char *name = syscall_name(wait->syscall);
		add_label(pprof, "syscall", name);
	}
	if (wait->reason[0])
		add_label(pprof, "wait", wait->reason);
	if (descriptor[0])
		add_label(pprof, "descriptor", descriptor);
}

static void add_since_label(struct pprof *pprof, int64_t since_ns)
{
	const struct profile *profile = pprof->report->profile;
	char text[TIME_POINT_TEXT_SIZE];

	time_point_format(profile->start_time_ns + since_ns - profile->start_ns, false, text);
	add_label(pprof, "since", text);
}

static void add_own_labels(struct pprof *pprof, const char *labels)
{
	struct label label = {0};

	while (labels_next(&labels, &label))
		add_label(pprof, label.key, label.value);
}

// Adds who was sampled.
static void add_thread_labels(struct pprof *pprof, const struct thread *thread)
{
	struct pprof_encoder *encoder = &pprof->encoder;
	const struct report *report = pprof->report;

	pprof_add_label(encoder, "pid", NULL, thread->pid);
	if (report->process_roots)
		add_label(pprof, "process", profile_process_of(report->profile, thread));
	if (!thread->is_task)
		pprof_add_label(encoder, "tid", NULL, thread->tid);
	else if (thread->task_id && report->task_ids)
		pprof_add_label(encoder, language_task_words()->id, NULL, thread->task_id);
	add_label(pprof, "thread", thread->name);
}

static void put_sample(struct pprof *pprof, const struct sample *sample)
{
	const struct profile *profile = pprof->report->profile;
	struct pprof_encoder *encoder = &pprof->encoder;

	add_sample_locations(pprof, sample);
	protobuf_varint(&encoder->packed, sample->count);
	protobuf_varint(&encoder->packed, sample->cpu_ns);
	protobuf_varint(&encoder->packed, sample->wall_ns);
	pprof_add_packed(encoder, SAMPLE_VALUE);
	add_thread_labels(pprof, &profile->threads[sample->thread]);
	add_label(pprof, "state", thread_state_name(sample->state));
	add_label(pprof, "kind", wait_kind_name(sample_kind(&pprof->kinds, sample)));
	if (sample->wait != WAIT_NONE)
		add_wait_labels(pprof, &profile->waits[sample->wait]);
	if (sample->is_one_wait)
		add_since_label(pprof, sample->since_ns);
	if (sample->labels != LABELS_NONE)
		add_own_labels(pprof, profile->labels[sample->labels]);
	const char *guess = frame_name_guess(&profile->stacks[sample->stack]);
	if (guess)
		add_label(pprof, "unwound", guess);
	pprof_put_message(encoder, PROFILE_SAMPLE);
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

static uint32_t function_id(struct pprof *pprof, const struct pprof_function *function)
{
	const uint64_t hash =
	    hash_mix((uint64_t)function->name << 32 | function->system_name,
	             (uint64_t)function->file << 32 | (uint32_t)function->start_line);
	const uint32_t known =
	    hash_index_find(&pprof->function_index, hash, function_equal, pprof, function);

	if (known != HASH_NONE)
		return known;
	struct pprof_function *added =
	    array_push(pprof->functions, pprof->n_functions, pprof->functions_capacity);
	*added = *function;
	added->id = pprof->n_functions;
	hash_index_insert(&pprof->function_index, hash, (uint32_t)added->id);
	return (uint32_t)added->id;
}

static uint32_t symbol_function_id(struct pprof *pprof, const struct function *function)
{
	struct pprof_encoder *encoder = &pprof->encoder;
	const char *system_name = function->system_name ?: "";

	// pprof takes a name that equals its system name for a raw one, and strips what looks like
	// parameters from it (pprof internal/symbolizer, demangleSingleFunction).
	if (strcmp(function->name, system_name) == 0 && strpbrk(system_name, "()<>[]"))
		system_name = "";
	return function_id(pprof, &(struct pprof_function){
	                              .name = pprof_string(encoder, function->name),
	                              .system_name = pprof_string(encoder, system_name),
	                              .file = pprof_string(encoder, function->file ?: ""),
	                              .start_line = function->start_line,
	                          });
}

// Adds the line of a frame that the profiler names. Without a system name, pprof takes its name as
// it is.
static void add_named_line(struct pprof *pprof, uint32_t name)
{
	pprof_add_line(&pprof->encoder, function_id(pprof, &(struct pprof_function){.name = name}),
	               0);
}

static uint32_t mapping_id(struct pprof *pprof, uint32_t module, size_t i)
{
	uint32_t *id = &pprof->mapping_ids[pprof->module_first[module] + i];
	const struct module *item = pprof->report->modules->items[module];

	if (*id == 0) {
		*array_push(pprof->mappings, pprof->n_mappings, pprof->mappings_capacity) =
		    (struct used_mapping){.module = item, .mapping = &item->mappings[i]};
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

static void add_symbol_lines(struct pprof *pprof, const struct location_lines *lines,
                             struct used_mapping *mapping)
{
	const struct symbols *symbols = pprof->report->symbols;

	for (uint32_t i = 0; i < lines->count; i++) {
		const struct line *line = &symbols->lines[lines->first + i];
		const struct function *function = &symbols->functions[line->function];

		pprof_add_line(&pprof->encoder, symbol_function_id(pprof, function), line->line);
		if (mapping) {
			mapping->has_files |= function->file && function->file[0] != '\0';
			mapping->has_lines |= line->line != 0;
			mapping->has_inlines |= lines->count > 1;
		}
	}
}

static void add_sampled_location(struct pprof *pprof, uint32_t id)
{
	const struct report *report = pprof->report;
	const struct location *location = &report->profile->locations[id];
	const struct location_lines *lines = &report->symbols->locations[id];
	uint64_t address;
	const uint32_t mapping = location_mapping(pprof, location, &address);

	protobuf_int(&pprof->encoder.message, LOCATION_MAPPING_ID, mapping);
	protobuf_int(&pprof->encoder.message, LOCATION_ADDRESS, address);
	if (lines->count > 0) {
		add_symbol_lines(pprof, lines, mapping ? &pprof->mappings[mapping - 1] : NULL);
		return;
	}
	// pprof would show a location without a name as [module], but speedscope drops it.
	_cleanup_free_ char *name =
	    frame_name_unresolved(report->modules->items[location->module], location->address);
	add_named_line(pprof, pprof_string(&pprof->encoder, name));
}

static void put_locations(struct pprof *pprof)
{
	const size_t n_sampled = pprof->report->profile->n_locations;

	for (size_t i = 0; i < pprof->locations.count; i++) {
		const uint32_t position = pprof->locations.positions[i];

		protobuf_int(&pprof->encoder.message, LOCATION_ID, i + 1);
		if (position < n_sampled)
			add_sampled_location(pprof, position);
		else
			add_named_line(pprof, (uint32_t)(position - n_sampled));
		pprof_put_message(&pprof->encoder, PROFILE_LOCATION);
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
	return pprof_string(&pprof->encoder, hex);
}

static void put_tables(struct pprof *pprof)
{
	struct pprof_encoder *encoder = &pprof->encoder;

	put_locations(pprof);
	for (size_t i = 0; i < pprof->n_functions; i++)
		pprof_put_function(encoder, &pprof->functions[i]);
	for (size_t i = 0; i < pprof->n_mappings; i++) {
		const struct used_mapping *used = &pprof->mappings[i];
		const struct pprof_mapping mapping = {
		    .id = i + 1,
		    .start = used->mapping->start,
		    .limit = used->mapping->end,
		    .offset = used->mapping->file_offset,
		    .file = pprof_string(encoder, used->module->path),
		    .build_id = build_id_string(pprof, used->module),
		    // The first says that all locations have names: else pprof would make up
		    // others.
		    .has = {true, used->has_files, used->has_lines, used->has_inlines},
		};
		pprof_put_mapping(encoder, &mapping);
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
	add_main_mapping(pprof);
}

static void pprof_deinit(struct pprof *pprof)
{
	sample_kinds_deinit(&pprof->kinds);
	pprof_ids_deinit(&pprof->locations);
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
	struct error *error = pprof_encoder_init(&pprof->encoder, stream);

	if (error)
		return error;
	pprof->report = report;
	pprof_init(pprof);
	put_header(pprof);
	put_samples(pprof, stream);
	put_tables(pprof);
	pprof_encoder_finish(&pprof->encoder);
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

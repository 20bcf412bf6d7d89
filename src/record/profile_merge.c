// SPDX-License-Identifier: MIT
#include "profile_merge.h"

#include <string.h>

#include "labels.h"
#include "memory.h"

#define MAX_WEIGHED 1e18

void merged_deinit(struct merged *merged)
{
	profile_deinit(&merged->profile);
	modules_deinit(&merged->modules);
	symbols_deinit(&merged->symbols);
	*merged = (struct merged){0};
}

static uint32_t add_module(struct merged *merged, const struct modules *modules,
                           const struct module *from)
{
	// Two runs number a runtime's functions each in its own way.
	const uint64_t inode = from->kind == MODULE_RUNTIME ? merged->modules.count : from->inode;
	struct module *module =
	    modules_add(&merged->modules, from->kind, from->path, from->device, inode, -1);

	for (size_t i = 0; i < from->n_mappings; i++)
		module_add_mapping(module, &from->mappings[i]);
	memcpy(module->build_id, from->build_id, from->build_id_size);
	module->build_id_size = from->build_id_size;
	if (from == modules->program)
		merged->modules.program = module;
	return module->index;
}

static void copy_functions(struct symbols *to, const struct symbols *from)
{
	for (size_t i = 0; i < from->n_functions; i++) {
		const struct function *function = &from->functions[i];
		*array_push(to->functions, to->n_functions, to->functions_capacity) =
		    (struct function){
		        .name = memory_strdup(function->name),
		        .system_name = memory_strdup(function->system_name ?: ""),
		        .file = memory_strdup(function->file ?: ""),
		        .start_line = function->start_line,
		    };
	}
}

// The lines of a location that has none yet.
static void copy_lines(struct merged *merged, uint32_t location, const struct symbols *from,
                       const struct location_lines *lines, size_t first_function)
{
	struct symbols *to = &merged->symbols;

	symbols_fit(to, location + 1);
	if (to->locations[location].count > 0)
		return;
	to->locations[location] =
	    (struct location_lines){.first = to->n_lines, .count = lines->count};
	for (uint32_t i = 0; i < lines->count; i++) {
		struct line line = from->lines[lines->first + i];
		line.function += first_function;
		*array_push(to->lines, to->n_lines, to->lines_capacity) = line;
	}
}

// The new ids of the profile's locations; the caller frees them.
static uint32_t *add_locations(struct merged *merged, const struct profile *profile,
                               const struct modules *modules, const struct symbols *symbols)
{
	uint32_t *ids = memory_alloc_zeroed(profile->n_locations, sizeof(*ids));
	_cleanup_free_ uint32_t *module_ids =
	    memory_alloc_zeroed(modules->count, sizeof(*module_ids));
	const size_t first_function = merged->symbols.n_functions;

	for (size_t i = 0; i < modules->count; i++)
		module_ids[i] = add_module(merged, modules, modules->items[i]);
	copy_functions(&merged->symbols, symbols);
	for (size_t i = 0; i < profile->n_locations; i++) {
		const struct location *location = &profile->locations[i];
		ids[i] = profile_intern_code(&merged->profile, module_ids[location->module],
		                             location->address, location->code);
		copy_lines(merged, ids[i], symbols, &symbols->locations[i], first_function);
	}
	return ids;
}

static uint32_t add_stack(struct merged *merged, const struct profile *profile,
                          const struct stack *stack, const uint32_t *location_ids)
{
	_cleanup_free_ uint32_t *ids = memory_alloc_zeroed(stack->n_frames, sizeof(*ids));

	for (uint32_t i = 0; i < stack->n_frames; i++)
		ids[i] = location_ids[profile->location_ids[stack->first + i]];
	return profile_intern_stack(&merged->profile, ids, stack->n_frames, stack->end,
	                            stack->guessed);
}

static uint32_t add_wait(struct merged *merged, const struct profile *profile, uint32_t wait)
{
	if (wait == WAIT_NONE)
		return WAIT_NONE;
	const struct wait *from = &profile->waits[wait];
	const uint32_t id = from->reason[0] ? profile_intern_reason(&merged->profile, from->reason,
	                                                            from->descriptor)
	                                    : profile_intern_wait(&merged->profile, from->syscall,
	                                                          from->descriptor, from->frames);
	if (from->meaning)
		profile_explain_descriptor(&merged->profile, id, from->meaning);
	return id;
}

static uint32_t add_labels(struct merged *merged, const struct profile *profile, uint32_t labels,
                           bool is_base)
{
	const char *text = labels == LABELS_NONE ? "" : profile->labels[labels];
	_cleanup_free_ char *marked = is_base ? memory_printf("%s%s", MERGED_BASE, text) : NULL;

	return profile_intern_labels(&merged->profile, marked ?: text);
}

static int64_t weigh(int64_t value, double weight)
{
	const double weighed = (double)value * weight;

	// What a recording says is within bounds, but not what it is multiplied by.
	return weighed > MAX_WEIGHED    ? (int64_t)MAX_WEIGHED
	       : weighed < -MAX_WEIGHED ? (int64_t)-MAX_WEIGHED
	                                : (int64_t)weighed;
}

// Adds the threads and processes, as if this run had begun when the one before it ended: a thread
// is of the process that had its pid then.
static void add_threads(struct merged *merged, const struct profile *profile)
{
	struct profile *to = &merged->profile;
	const int64_t later_ns = merged->end_ns - profile->start_ns;

	for (size_t i = 0; i < profile->n_threads; i++) {
		const struct thread *thread = &profile->threads[i];
		const int64_t first_ns = thread->first_ns + later_ns;
		if (thread->is_task)
			profile_add_task(to, thread->pid, thread->task_id, thread->name, first_ns);
		else
			profile_add_thread(to, thread->pid, thread->tid, thread->name, first_ns);
		if (first_ns >= merged->end_ns)
			merged->end_ns = first_ns + 1;
	}
	for (size_t i = 0; i < profile->n_processes; i++) {
		const struct process_name *process = &profile->processes[i];
		const int64_t from_ns = process->from_ns ? process->from_ns : profile->start_ns;
		profile_begin_process(to, process->pid, process->name, from_ns + later_ns);
	}
}

void merged_add(struct merged *merged, const struct profile *profile, const struct modules *modules,
                const struct symbols *symbols, double weight)
{
	struct profile *to = &merged->profile;
	const uint32_t first_thread = to->n_threads;
	_cleanup_free_ uint32_t *location_ids = add_locations(merged, profile, modules, symbols);

	to->period_ns = profile->period_ns;
	to->start_time_ns = profile->start_time_ns;
	to->duration_ns = profile->duration_ns;
	add_threads(merged, profile);
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *from = &profile->samples[i];
		*array_push(to->samples, to->n_samples, to->samples_capacity) = (struct sample){
		    .stack =
		        add_stack(merged, profile, &profile->stacks[from->stack], location_ids),
		    .thread = first_thread + from->thread,
		    .wait = add_wait(merged, profile, from->wait),
		    .labels = add_labels(merged, profile, from->labels, weight < 0),
		    .state = from->state,
		    .count = (uint64_t)weigh((int64_t)from->count, weight),
		    .wall_ns = weigh(from->wall_ns, weight),
		    .cpu_ns = weigh(from->cpu_ns, weight),
		};
	}
}

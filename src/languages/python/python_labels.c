// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdlib.h>

#include "labels.h"
#include "memory.h"
#include "profile.h"
#include "python.h"
#include "runtimes.h"
#include "unwind.h"

static bool shows(struct python *python, const struct unwound *stack, enum python_native kind)
{
	for (size_t i = 0; i < stack->n; i++)
		if (python_natives_get(&python->natives, python->setup->profile,
		                       stack->locations[i]) == kind)
			return true;
	return false;
}

// The task that is executed, and those that wait for it, the nearest one first.
static void add_tasks(const struct python *python, const struct python_note *note, char **labels)
{
	_cleanup_free_ char *awaiters = NULL;

	for (uint32_t i = 0; i < note->n_tasks; i++) {
		_cleanup_free_ char *name = python_tasks_name(python, &note->tasks[i]);
		if (i == 0) {
			labels_add(labels, "task", name ? name : "?");
			continue;
		}
		char *longer = memory_printf("%s%s%s", awaiters ? awaiters : "",
		                             awaiters ? ", " : "", name ? name : "?");
		free(awaiters);
		awaiters = longer;
	}
	if (awaiters && note->has_more_tasks) {
		char *longer = memory_printf("%s, ...", awaiters);
		free(awaiters);
		awaiters = longer;
	}
	if (awaiters)
		labels_add(labels, "awaited_by", awaiters);
	else if (note->n_tasks > 0 && note->has_more_tasks)
		labels_add(labels, "awaited_by", "...");
}

uint32_t python_labels(struct python *python, const struct python_note *note,
                       const struct unwound *stack, uint64_t interp_id, bool waits)
{
	_cleanup_free_ char *labels = NULL;

	if (note->holds_gil)
		labels_add(&labels, "gil", "holding");
	else if (waits || shows(python, stack, PYTHON_NATIVE_TAKE_GIL))
		labels_add(&labels, "gil", "waiting");
	if (note->collects || shows(python, stack, PYTHON_NATIVE_COLLECT))
		labels_add(&labels, "gc", "collecting");
	add_tasks(python, note, &labels);
	if (python->n_interps > 1 && note->has_state) {
		_cleanup_free_ char *id = memory_printf("%" PRIu64, interp_id);
		labels_add(&labels, "interpreter", id);
	}
	return profile_intern_labels(python->setup->profile, labels);
}

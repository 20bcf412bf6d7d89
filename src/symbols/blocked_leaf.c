// SPDX-License-Identifier: MIT
#include "blocked_leaf.h"

#include <stdbool.h>
#include <string.h>

#include "memory.h"
#include "module.h"
#include "profile.h"
#include "symbolize.h"
#include "text.h"

// Of glibc's condition variables, which have the longest way.
enum { MAX_INNER_FRAMES = 6 };

// Functions and labels that lead any blocking call to the kernel, in glibc and musl.
static const char *const inner_names[] = {
    "__syscall_cancel_arch",
    "__syscall_cancel_arch_start",
    "__syscall_cancel_arch_end",
    "__internal_syscall_cancel",
    "__syscall_cancel",
    "__syscall_cp_asm",
    "__syscall_cp_c",
    "__syscall_cp",
    "__cp_begin",
    "__cp_end",
};

static const char *const libraries[] = {"libc.so.6", "libc-", "libpthread", "ld-musl-",
                                        "libc.musl-"};

static bool is_c_library(const struct module *module)
{
	const char *name = module_name(module);

	for (size_t i = 0; module->kind == MODULE_FILE && i < array_size(libraries); i++)
		if (text_begins_with(name, libraries[i]))
			return true;
	return false;
}

// True if the location has no name, or that of an inner function.
static bool is_inner(const struct symbols *symbols, const struct module *module, uint32_t location)
{
	const struct location_lines *lines = &symbols->locations[location];

	if (lines->count == 0)
		return is_c_library(module);
	const struct line *line = &symbols->lines[lines->first + lines->count - 1];
	for (size_t i = 0; i < array_size(inner_names); i++)
		if (strcmp(symbols->functions[line->function].name, inner_names[i]) == 0)
			return true;
	return false;
}

uint32_t blocked_leaf_inner_frames(const struct profile *profile, const struct modules *modules,
                                   const struct symbols *symbols, const struct sample *sample)
{
	const struct stack *stack = &profile->stacks[sample->stack];
	uint32_t module = UINT32_MAX, n = 0;

	if (stack->n_frames == 0 ||
	    (sample->state != THREAD_SLEEPING && sample->state != THREAD_DISK))
		return 0;
	const uint32_t *ids = profile->location_ids + stack->first;
	for (; n < stack->n_frames && ids[n] < symbols->n_locations; n++) {
		const uint32_t owner = profile->locations[ids[n]].module;
		if (owner >= modules->count || (n > 0 && owner != module))
			break;
		module = owner;
		if (!is_inner(symbols, modules->items[module], ids[n]))
			return n <= MAX_INNER_FRAMES ? n : 0;
	}
	return n > 0 && n <= MAX_INNER_FRAMES ? n - 1 : 0;
}

void blocked_leaf_shorten(struct profile *profile, const struct modules *modules,
                          const struct symbols *symbols)
{
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		struct stack *stack = &profile->stacks[sample->stack];
		const uint32_t n = blocked_leaf_inner_frames(profile, modules, symbols, sample);
		stack->first += n;
		stack->n_frames -= n;
	}
}

// SPDX-License-Identifier: MIT
#include "top_own.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "module.h"
#include "own_code.h"
#include "profile.h"
#include "symbolize.h"
#include "top_model.h"

enum { LOOKED_AT = 1, OWN = 2, START = 4, WAIT_INNER = 8 };

static bool matches_any(const char *name, const char *const *patterns, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const size_t length = strlen(patterns[i]);
		const bool is_start = patterns[i][length - 1] == '*';
		if (is_start ? strncmp(name, patterns[i], length - 1) == 0
		             : strcmp(name, patterns[i]) == 0)
			return true;
	}
	return false;
}

// What the functions of threads and of programs are called by.
static bool is_start(const char *name)
{
	static const char *const starts[] = {
	    "_start",   "__libc_start_*", "clone",          "clone3",       "__clone",
	    "__clone3", "start_thread",   "runtime.goexit", "runtime.main", "thread_start",
	};

	return matches_any(name, starts, array_size(starts));
}

// What the functions of locks, conditions and cancellable calls call within the C library, and
// those of Go's library that wait within its runtime.
static bool is_wait_inner(const char *name)
{
	static const char *const inner[] = {
	    "futex_*",
	    "__futex_*",
	    "do_futex_wait*",
	    "lll_*",
	    "__lll_*",
	    "__GI___lll_*",
	    "__GI___futex_*",
	    "__condvar_*",
	    "__pthread_cond_wait_common",
	    "__pthread_mutex_lock_full",
	    "__pthread_mutex_cond_lock*",
	    "__pthread_rwlock_*_full*",
	    "__pthread_clockjoin_ex",
	    "__new_sem_wait_slow*",
	    "__syscall_cancel*",
	    "__internal_syscall_cancel",
	    "runtime.*",
	    "internal/poll.*",
	    "internal/runtime/*",
	    "internal/sync.*",
	};

	return matches_any(name, inner, array_size(inner));
}

static void look_at(struct top_owned *owned, uint32_t index, const struct module *module,
                    const struct function *function)
{
	if (owned->bits)
		return;
	owned->module = index;
	owned->bits = LOOKED_AT;
	if (own_code_function(module, function))
		owned->bits |= OWN;
	else if (function && is_start(function->name))
		owned->bits |= START;
	else if (function && is_wait_inner(function->name))
		owned->bits |= WAIT_INNER;
}

static void fit(struct top_owned **owned, size_t *n, size_t *capacity, size_t need)
{
	*owned = memory_grow(*owned, capacity, need + 1, sizeof(**owned));
	if (need > *n)
		memset(*owned + *n, 0, (need - *n) * sizeof(**owned));
	*n = need;
}

void top_own_update(struct top_own *own, const struct profile *profile,
                    const struct modules *modules, const struct symbols *symbols)
{
	fit(&own->functions, &own->n_functions, &own->functions_capacity, symbols->n_functions);
	fit(&own->locations, &own->n_locations, &own->locations_capacity, profile->n_locations);
	for (size_t i = 0; i < profile->n_locations; i++) {
		const uint32_t index = profile->locations[i].module;
		const struct module *module = modules->items[index];
		const uint32_t n = i < symbols->n_locations ? symbols->locations[i].count : 0;
		if (n == 0)
			look_at(&own->locations[i], index, module, NULL);
		for (uint32_t j = 0; j < n; j++) {
			const uint32_t id =
			    symbols->lines[symbols->locations[i].first + j].function;
			look_at(&own->functions[id], index, module, &symbols->functions[id]);
		}
	}
}

void top_own_deinit(struct top_own *own)
{
	free(own->functions);
	free(own->locations);
	*own = (struct top_own){0};
}

// NULL: the reason why a stack ends.
static const struct top_owned *find(const struct top_input *input, uint32_t id)
{
	const size_t n_functions = input->symbols->n_functions;

	if (id < n_functions)
		return &input->own->functions[id];
	id -= (uint32_t)n_functions;
	return id < input->profile->n_locations ? &input->own->locations[id] : NULL;
}

static bool is(const struct top_input *input, uint32_t id, uint8_t bit)
{
	const struct top_owned *owned = find(input, id);

	return owned && owned->bits & bit;
}

bool top_is_own(const struct top_input *input, uint32_t id)
{
	return is(input, id, OWN);
}

uint32_t top_module_of(const struct top_input *input, uint32_t id)
{
	const struct top_owned *owned = find(input, id);

	return owned && owned->bits ? owned->module : TOP_NONE;
}

// Without the functions that start a thread and those that a wait is made of, unless there are no
// others. Returns how many frames are left.
static size_t fold_ends(const struct top_input *input, uint32_t *ids, uint32_t *lines, size_t n)
{
	size_t first = 0;

	while (n > 1 && is(input, ids[n - 1], START))
		n--;
	while (first < n && is(input, ids[first], WAIT_INNER))
		first++;
	first = first < n ? first : 0;
	memmove(ids, ids + first, (n - first) * sizeof(*ids));
	memmove(lines, lines + first, (n - first) * sizeof(*lines));
	return n - first;
}

// Of the frames that are not the program's own only those that its own functions called.
static size_t fold_around(const struct top_input *input, uint32_t *ids, uint32_t *lines, size_t n)
{
	size_t kept = 0;

	while (n > 0 && !top_is_own(input, ids[n - 1]))
		n--;
	for (size_t i = 0; i < n; i++) {
		if (!top_is_own(input, ids[i]) && !top_is_own(input, ids[i + 1]))
			continue;
		ids[kept] = ids[i];
		lines[kept++] = lines[i];
	}
	return kept;
}

size_t top_own_frame(const struct top_input *input, const uint32_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (top_is_own(input, ids[i]))
			return i;
	return n;
}

size_t top_fold(const struct top_input *input, uint32_t *ids, uint32_t *lines, size_t n)
{
	// Why the stack is not whole is told in any case.
	const bool has_end = n > 1 && !find(input, ids[n - 1]);
	const uint32_t end = ids[n - 1];

	n -= has_end;
	n = top_own_frame(input, ids, n) < n ? fold_around(input, ids, lines, n)
	                                     : fold_ends(input, ids, lines, n);
	ids[n] = end;
	lines[n] = 0;
	return n + has_end;
}

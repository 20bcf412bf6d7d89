// SPDX-License-Identifier: MIT
#include "advice.h"

#include <fnmatch.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "module.h"
#include "profile.h"
#include "symbolize.h"
#include "text.h"

enum { MAX_NAME_BYTES = 64 };

// A program or library that a runtime is known by, to the end of its name or to a digit, a dot or
// a dash, or a pattern (fnmatch(3)); and how it is made to name the code that it compiles.
struct runtime {
	const char *file;
	const char *recipe;
};

static const struct runtime runtimes[] = {
    {"node", "node --perf-basic-prof names it"},
    {"nodejs", "node --perf-basic-prof names it"},
    {"libnode.so", "node --perf-basic-prof names it"},
    {"libjvm.so", "jcmd PID Compiler.perfmap names it, while it is profiled or before"},
    {"php", "php -d opcache.jit_debug=16 names it"},
    {"php-fpm", "opcache.jit_debug=16 in php.ini names it"},
    {"libphp", "opcache.jit_debug=16 in php.ini names it"},
    {"beam.smp", "erl +JPperf true names it"},
    {"deno", "deno run --v8-flags=--perf-basic-prof names it"},
    {"chromium", "chromium --js-flags=--perf-basic-prof names it"},
    {"chrome", "chrome --js-flags=--perf-basic-prof names it"},
    {"pypy", "Python's functions are shown of CPython, not of PyPy"},
    {"libpypy*-c.so", "Python's functions are shown of CPython, not of PyPy"},
};

// Samples, and those that lack names: by the file of the first frame that has none, or in code that
// no file holds.
struct nameless {
	uint64_t n_samples, n_lacking, n_made;
	uint64_t *by_module;
};

// The frame next to the leaf that has no name, if the leaf or most of its callers have none; else
// NULL.
static const struct location *find_nameless(const struct profile *profile,
                                            const struct symbols *symbols,
                                            const struct stack *stack)
{
	const uint32_t *ids = profile->location_ids + stack->first;
	size_t n_nameless = 0, first = 0;

	for (size_t i = stack->n_frames; i > 0; i--) {
		if (symbols->locations[ids[i - 1]].count > 0)
			continue;
		n_nameless++;
		first = i - 1;
	}
	if (n_nameless == 0 || (first > 0 && n_nameless * 2 <= stack->n_frames))
		return NULL;
	return &profile->locations[ids[first]];
}

static void count_sample(const struct profile *profile, const struct modules *modules,
                         const struct symbols *symbols, const struct sample *sample,
                         struct nameless *nameless)
{
	const struct location *location =
	    find_nameless(profile, symbols, &profile->stacks[sample->stack]);

	nameless->n_samples += sample->count;
	if (!location)
		return;
	const struct module *module = modules->items[location->module];
	nameless->n_lacking += sample->count;
	if (module_is_jit(module))
		nameless->n_made += sample->count;
	else if (module->kind == MODULE_FILE)
		nameless->by_module[location->module] += sample->count;
}

// Of the threads that run or are ready to, if any is: most of those that wait are a runtime's own.
static void count(const struct profile *profile, const struct modules *modules,
                  const struct symbols *symbols, struct nameless *nameless)
{
	bool is_active = false;

	for (size_t i = 0; i < profile->n_samples; i++)
		is_active |= profile->samples[i].count > 0 &&
		             !thread_state_is_blocked(profile->samples[i].state);
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		if (sample->count > 0 && (!is_active || !thread_state_is_blocked(sample->state)))
			count_sample(profile, modules, symbols, sample, nameless);
	}
}

static bool is_of(const struct module *module, const struct runtime *runtime)
{
	const char *name = module_name(module);
	const size_t length = strlen(runtime->file);

	if (module->kind != MODULE_FILE)
		return false;
	return fnmatch(runtime->file, name, 0) == 0 ||
	       (strncmp(name, runtime->file, length) == 0 &&
	        strspn(name + length, ".-0123456789") == strlen(name + length));
}

static const struct runtime *find_runtime(const struct modules *modules)
{
	for (size_t i = 0; i < modules->count; i++)
		for (size_t j = 0; j < sizeof(runtimes) / sizeof(runtimes[0]); j++)
			if (is_of(modules->items[i], &runtimes[j]))
				return &runtimes[j];
	return NULL;
}

static char *advise_on_made(const struct modules *modules, int percent)
{
	const struct runtime *runtime = find_runtime(modules);

	return memory_printf(
	    "names are lacking in %d %% of the samples, mostly of code that %s%s", percent,
	    runtime ? "was compiled as the program ran: "
	            : "is in no file: /tmp/perf-PID.map, as for perf, names it, if its runtime can "
	              "write one; a packed program (UPX) has to be unpacked first",
	    runtime ? runtime->recipe : "");
}

static bool is_of_windows(const struct module *module)
{
	const char *name = module_name(module);

	return fnmatch("*.dll", name, FNM_CASEFOLD) == 0 ||
	       fnmatch("*.exe", name, FNM_CASEFOLD) == 0;
}

static char *advise_on_file(const struct module *module, int percent, bool asked_servers)
{
	_cleanup_free_ char *name =
	    text_clean(module_name(module), strlen(module_name(module)), MAX_NAME_BYTES);
	const char *where = "its debug file, in a --debug-dir, names them";

	if (is_of_windows(module))
		where = "Windows programs (wine, .NET) have their names and unwinding rules in a "
		        "form that is not read";
	else if (asked_servers)
		where = "the servers have no debug file for it; one in a --debug-dir names them";
	else if (module->build_id_size > 0)
		where = "its debug file names them, in a --debug-dir or got with --debuginfod";
	return memory_printf("names are lacking in %d %% of the samples, mostly of %s: %s", percent,
	                     name, where);
}

char *advice_on_names(const struct profile *profile, const struct modules *modules,
                      const struct symbols *symbols, bool asked_servers)
{
	_cleanup_free_ uint64_t *by_module =
	    memory_alloc_zeroed(modules->count + 1, sizeof(*by_module));
	struct nameless nameless = {.by_module = by_module};
	size_t worst = 0;

	count(profile, modules, symbols, &nameless);
	if (nameless.n_lacking * 2 <= nameless.n_samples)
		return NULL;
	const int percent = (int)(nameless.n_lacking * 100 / nameless.n_samples);
	for (size_t i = 1; i < modules->count; i++)
		if (by_module[i] > by_module[worst])
			worst = i;
	if (nameless.n_made > by_module[worst])
		return advise_on_made(modules, percent);
	if (by_module[worst] == 0)
		return NULL; // in no code that is known
	return advise_on_file(modules->items[worst], percent, asked_servers);
}

const char *advice_on_goroutines(const struct modules *modules)
{
	static const struct runtime gccgo = {.file = "libgo.so"};

	for (size_t i = 0; i < modules->count; i++)
		if (is_of(modules->items[i], &gccgo))
			return "goroutines are shown of programs that Go's own compiler has made, "
			       "not of gccgo's (libgo.so): those that no thread runs are missing";
	return NULL;
}

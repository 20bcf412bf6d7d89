// SPDX-License-Identifier: MIT
#include "hidden_language.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>

#include "memory.h"
#include "module.h"
#include "profile.h"
#include "symbolize.h"

// A program or library that a runtime is known by. An interpreter's script never has functions in
// the stack; a compiler's has, but only a perf map names them.
struct runtime {
	const char *files; // a pattern (fnmatch(3)) for a module's name
	bool is_interpreter;
	const char *what, *remedy;
};

#define JAVASCRIPT "JavaScript functions"
#define NODE_REMEDY "start it with node --perf-basic-prof"
#define RUBY "Ruby functions", "rbspy shows them"
#define PHP "PHP functions", "phpspy shows them"
#define PHP_COMPILED "compiled PHP functions", "opcache.jit_debug=16 in php.ini names them"
#define PERL "Perl functions", "Devel::NYTProf shows them, if the program starts with it"
#define PYPY "Python functions of PyPy", "only those of CPython are"

// Compilers before interpreters: of a language that has both, the stack tells which one.
static const struct runtime runtimes[] = {
    {"node", false, JAVASCRIPT, NODE_REMEDY},
    {"nodejs", false, JAVASCRIPT, NODE_REMEDY},
    {"libnode.so*", false, JAVASCRIPT, NODE_REMEDY},
    {"deno", false, JAVASCRIPT, "start it with deno run --v8-flags=--perf-basic-prof"},
    {"chromium", false, JAVASCRIPT, "start it with chromium --js-flags=--perf-basic-prof"},
    {"chrome", false, JAVASCRIPT, "start it with chrome --js-flags=--perf-basic-prof"},
    {"libjvm.so", false, "Java methods", "jcmd PID Compiler.perfmap, run meanwhile, names them"},
    {"libcoreclr.so", false, ".NET methods",
     "start it with DOTNET_PerfMapEnabled=1 in its environment"},
    {"beam.smp", false, "Erlang functions", "start it with erl +JPperf true"},
    {"php", false, PHP_COMPILED},
    {"php[0-9]*", false, PHP_COMPILED},
    {"php-fpm*", false, PHP_COMPILED},
    {"libphp*", false, PHP_COMPILED},
    {"php", true, PHP},
    {"php[0-9]*", true, PHP},
    {"php-fpm*", true, PHP},
    {"php-cgi*", true, PHP},
    {"libphp*", true, PHP},
    {"ruby", true, RUBY},
    {"ruby[0-9]*", true, RUBY},
    {"libruby*", true, RUBY},
    {"perl", true, PERL},
    {"perl[0-9]*", true, PERL},
    {"libperl*", true, PERL},
    {"pypy*", true, PYPY},
    {"libpypy*", true, PYPY},
};

static_assert(array_size(runtimes) <= HIDDEN_LANGUAGES_MAX, "each needs a number");

const char *hidden_language_what(int language)
{
	return runtimes[language].what;
}

const char *hidden_language_remedy(int language)
{
	return runtimes[language].remedy;
}

// True if the stack has more frames of compiled code without a name than with one.
static bool has_nameless_code(const struct profile *profile, const struct modules *modules,
                              const struct symbols *symbols, const struct stack *stack)
{
	size_t n_named = 0, n_nameless = 0;

	for (uint32_t i = 0; i < stack->n_frames; i++) {
		const uint32_t id = profile->location_ids[stack->first + i];
		if (!module_is_jit(modules->items[profile->locations[id].module]))
			continue;
		if (symbols->locations[id].count > 0)
			n_named++;
		else
			n_nameless++;
	}
	return n_nameless > n_named;
}

// A runtime whose file has a frame in the stack.
static int find_in_stack(const struct profile *profile, const struct modules *modules,
                         const struct stack *stack, bool is_interpreter)
{
	const struct module *last = NULL;

	for (uint32_t i = 0; i < stack->n_frames; i++) {
		const uint32_t id = profile->location_ids[stack->first + i];
		const struct module *module = modules->items[profile->locations[id].module];
		if (module == last || module->kind != MODULE_FILE)
			continue;
		last = module; // neighbours are often alike
		for (size_t j = 0; j < array_size(runtimes); j++)
			if (runtimes[j].is_interpreter == is_interpreter &&
			    fnmatch(runtimes[j].files, module_name(module), 0) == 0)
				return (int)j;
	}
	return HIDDEN_NONE;
}

// A compiling runtime in the process: its code may be called by a stack that is cut.
static int find_loaded(const struct modules *modules)
{
	for (size_t i = 0; i < modules->count; i++)
		for (size_t j = 0; j < array_size(runtimes); j++)
			if (modules->items[i]->kind == MODULE_FILE && !runtimes[j].is_interpreter &&
			    fnmatch(runtimes[j].files, module_name(modules->items[i]), 0) == 0)
				return (int)j;
	return HIDDEN_NONE;
}

int hidden_language_of(const struct profile *profile, const struct modules *modules,
                       const struct symbols *symbols, const struct stack *stack)
{
	const bool is_nameless = has_nameless_code(profile, modules, symbols, stack);
	int language = HIDDEN_NONE;

	if (is_nameless)
		language = find_in_stack(profile, modules, stack, false);
	if (language == HIDDEN_NONE)
		language = find_in_stack(profile, modules, stack, true);
	return language == HIDDEN_NONE && is_nameless ? find_loaded(modules) : language;
}

const char *hidden_language_tasks(const struct modules *modules)
{
	for (size_t i = 0; i < modules->count; i++)
		if (modules->items[i]->kind == MODULE_FILE &&
		    fnmatch("libgo.so*", module_name(modules->items[i]), 0) == 0)
			return "goroutines that no thread runs are missing: this program was built "
			       "by gccgo (libgo.so), and only those of Go's own compiler are shown";
	return NULL;
}

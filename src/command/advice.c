// SPDX-License-Identifier: MIT
#include "advice.h"

#include <fnmatch.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hidden_language.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "sample_kind.h"
#include "sample_work.h"
#include "symbolize.h"
#include "text.h"

enum { MAX_NAME_BYTES = 64, LEAST_LANGUAGE_PERCENT = 10 };

// Samples, and those in which a language hides its functions.
struct languages_tally {
	uint64_t n_samples, by_language[HIDDEN_LANGUAGES_MAX];
};

// Samples, and those of them that lack names: by the file of the first frame that has none, or in
// code that no file holds.
struct nameless {
	const struct profile *profile; // these are borrowed
	const struct modules *modules;
	const struct symbols *symbols;
	uint64_t n_lacking, n_made;
	uint64_t *by_module;
	struct languages_tally all, busy; // busy: on a CPU, or waiting for one
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

static void count_language(struct languages_tally *tally, int language, uint64_t n)
{
	tally->n_samples += n;
	if (language != HIDDEN_NONE)
		tally->by_language[language] += n;
}

static void count_sample(struct nameless *nameless, const struct sample *sample)
{
	const struct profile *profile = nameless->profile;
	const struct stack *stack = &profile->stacks[sample->stack];

	const int language =
	    hidden_language_of(profile, nameless->modules, nameless->symbols, stack);
	count_language(&nameless->all, language, sample->count);
	if (!thread_state_is_blocked(sample->state))
		count_language(&nameless->busy, language, sample->count);
	if (language != HIDDEN_NONE)
		return;
	const struct location *location = find_nameless(profile, nameless->symbols, stack);
	if (!location)
		return;
	const struct module *module = nameless->modules->items[location->module];
	nameless->n_lacking += sample->count;
	if (module_is_jit(module))
		nameless->n_made += sample->count;
	else if (module->kind == MODULE_FILE)
		nameless->by_module[location->module] += sample->count;
}

static void count(struct nameless *nameless)
{
	const struct profile *profile = nameless->profile;
	_cleanup_free_ bool *is_idle =
	    memory_alloc_zeroed(profile->n_samples + 1, sizeof(*is_idle));
	bool all_idle = true;
	struct sample_work *work =
	    sample_work_create(profile, nameless->modules, nameless->symbols);
	struct sample_kinds kinds;

	sample_kinds_init(&kinds, profile, nameless->symbols);
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		if (sample->count == 0)
			continue;
		is_idle[i] = sample_has_no_work(work, sample, sample_kind(&kinds, sample));
		all_idle &= is_idle[i];
	}
	sample_kinds_deinit(&kinds);
	sample_work_destroy(work);
	for (size_t i = 0; i < profile->n_samples; i++)
		if (profile->samples[i].count > 0 && (all_idle || !is_idle[i]))
			count_sample(nameless, &profile->samples[i]);
}

static void add_line(struct advice *advice, char *line)
{
	if (advice->n_lines < ADVICE_MAX_LINES)
		advice->lines[advice->n_lines++] = line;
	else
		free(line);
}

// True if the functions of that name are hidden in a tenth of the samples, whichever file has them.
static bool is_hidden(const struct languages_tally *tally, const char *what)
{
	uint64_t n = 0;

	for (int i = 0; i < HIDDEN_LANGUAGES_MAX; i++)
		if (tally->by_language[i] > 0 && strcmp(hidden_language_what(i), what) == 0)
			n += tally->by_language[i];
	return n > 0 && n * 100 >= tally->n_samples * LEAST_LANGUAGE_PERCENT;
}

static void advise_on_languages(const struct nameless *nameless, struct advice *advice)
{
	const char *told = "";

	for (int i = 0; i < HIDDEN_LANGUAGES_MAX; i++) {
		if (nameless->all.by_language[i] == 0)
			continue;
		const char *what = hidden_language_what(i);
		if (strcmp(what, told) == 0 ||
		    !(is_hidden(&nameless->all, what) || is_hidden(&nameless->busy, what)))
			continue;
		told = what; // the files of a language follow one another
		add_line(advice,
		         memory_printf("%s are not shown: %s", what, hidden_language_remedy(i)));
	}
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
	const char *remedy = "give a directory with its debug symbols (--debug-dir)";

	if (is_of_windows(module))
		remedy = "the symbols of Windows programs (wine, .NET) cannot be read";
	else if (asked_servers)
		remedy = "the --debuginfod servers do not have its debug symbols";
	else if (module->build_id_size > 0)
		remedy = "install its debug symbols, or use --debuginfod";
	return memory_printf("%d %% of the samples have no function names, mostly in %s: %s",
	                     percent, name, remedy);
}

static void advise_on_others(const struct nameless *nameless, bool asked_servers,
                             struct advice *advice)
{
	const int percent = (int)(nameless->n_lacking * 100 / nameless->all.n_samples);
	size_t worst = 0;

	for (size_t i = 1; i < nameless->modules->count; i++)
		if (nameless->by_module[i] > nameless->by_module[worst])
			worst = i;
	if (nameless->n_made > nameless->by_module[worst])
		add_line(advice, memory_printf("%d %% of the samples have no function names, "
		                               "mostly in code that is in no file: a runtime can "
		                               "name it in /tmp/perf-PID.map, as for perf; "
		                               "unpack a packed program (UPX)",
		                               percent));
	else if (nameless->by_module[worst] > 0) // else in no code that is known
		add_line(advice,
		         advise_on_file(nameless->modules->items[worst], percent, asked_servers));
}

void advice_on_names(const struct profile *profile, const struct modules *modules,
                     const struct symbols *symbols, bool asked_servers, struct advice *ret)
{
	_cleanup_free_ uint64_t *by_module =
	    memory_alloc_zeroed(modules->count + 1, sizeof(*by_module));
	struct nameless nameless = {
	    .profile = profile, .modules = modules, .symbols = symbols, .by_module = by_module};

	*ret = (struct advice){0};
	count(&nameless);
	advise_on_languages(&nameless, ret);
	if (nameless.n_lacking * 2 > nameless.all.n_samples)
		advise_on_others(&nameless, asked_servers, ret);
}

void advice_deinit(struct advice *advice)
{
	for (size_t i = 0; i < advice->n_lines; i++)
		free(advice->lines[i]);
	*advice = (struct advice){0};
}

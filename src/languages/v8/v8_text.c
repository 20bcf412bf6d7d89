// SPDX-License-Identifier: MIT
// v8_text: what programs in JavaScript are known by in text (language_text.h), also those whose
// functions only a perf map names, and what a run tells of them.
#include "languages.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "memory.h"
#include "own_code.h"
#include "run_stats.h"
#include "text.h"

static const char *const javascript_files[] = {
    "node", "nodejs", "libnode.so*", "deno", "bun", NULL,
};

// V8's; not sweeping, as any program that allocates has that.
static const char *const javascript_collects[] = {
    "v8::internal::Heap::CollectGarbage",
    "v8::internal::Scaveng",
    "v8::internal::ConcurrentMarking",
    "v8::internal::IncrementalMarking",
    "v8::internal::MarkCompact",
    "v8::internal::MinorMark",
    "v8::internal::Evacuat",
    "v8::internal::PageEvacuation",
    "v8::internal::PointersUpdating",
    NULL,
};
// Not what other threads mark meanwhile.
static const char *const javascript_collects_all[] = {
    "v8::internal::IncrementalMarking",
    "v8::internal::MarkCompact",
    NULL,
};
static const char *const javascript_allocates[] = {
    "v8::internal::Heap::CollectGarbage",
    "v8::internal::Runtime_AllocateIn",
    NULL,
};

static const char *const javascript_inner[] = {
    "Builtin:*", "BytecodeHandler:*", "Handler:*", "RegExp:*", "Stub:*", NULL,
};

static bool javascript_is_packaged(const char *path)
{
	return strstr(path, "/node_modules/");
}

static enum code_owner javascript_owner(const struct code_place *place)
{
	if (place->kind == MODULE_FILE)
		return CODE_OF_NOBODY;
	return strncmp(place->file, "node:", strlen("node:")) == 0 || strstr(place->name, " node:")
	           ? CODE_OF_LANGUAGE
	           : CODE_OF_NOBODY;
}

// Returns the length of "file:3:13" without the column.
static size_t length_without_column(const char *place)
{
	const char *column = strrchr(place, ':');
	const char *line = column;

	while (line && line > place && isdigit((unsigned char)line[-1]))
		line--;
	return line && line > place && line < column && line[-1] == ':' ? (size_t)(column - place)
	                                                                : strlen(place);
}

// Returns the length of what V8 puts before a function's name, with a mark for how well it is
// compiled; 0: it is none of V8's.
static size_t javascript_length(const char *name)
{
	static const char *const starts[] = {"JS:", "LazyCompile:", "Function:"};

	for (size_t i = 0; i < array_size(starts); i++)
		if (strncmp(name, starts[i], strlen(starts[i])) == 0)
			return strlen(starts[i]) + strspn(name + strlen(starts[i]), "*~^+");
	return 0;
}

// "fib /app/srv.js:3:13".
static char *javascript_name(const char *function)
{
	const char *space = strchr(function, ' ');
	if (!space)
		return memory_strdup(function);
	const char *slash = strrchr(space, '/'), *place = slash ? slash + 1 : space + 1;
	return memory_printf("%.*s%s(%.*s)", (int)(space - function), function,
	                     space > function ? " " : "", (int)length_without_column(place), place);
}

static char *javascript_shorten(const char *name)
{
	const size_t start = javascript_length(name);

	return start > 0 ? javascript_name(name + start) : NULL;
}

static const char *const javascript_children[] = {"node::SyncProcessRunner::", NULL};
static const char *const javascript_enters[] = {"Builtins_JSEntry", NULL};

static void print_unread(const struct run_stats *stats, FILE *stream)
{
	const struct run_language *v8 = &stats->languages[language_position(&v8_language)];

	if (v8->unknown > 0)
		fprintf(
		    stream,
		    "profiler: this version of V8 (%d) is not known to this profiler: JavaScript "
		    "functions have no names\n",
		    v8->unknown);
	else if (v8->unknown)
		fputs("profiler: this V8 is not known to this profiler: JavaScript functions have "
		      "no names\n",
		      stream);
	if (v8->unnamed)
		fprintf(
		    stream,
		    "profiler: %ju frame%s of JavaScript without a name: the function was gone, "
		    "or had moved, before it was read, or there were too many\n",
		    (uintmax_t)v8->unnamed, text_plural(v8->unnamed));
}

const struct language_text v8_text = {
    .children = javascript_children,
    .enters = javascript_enters,
    .collects = javascript_collects,
    .collects_all = javascript_collects_all,
    .allocates = javascript_allocates,
    .files = javascript_files,
    .inner = javascript_inner,
    .is_packaged = javascript_is_packaged,
    .owner = javascript_owner,
    .shorten = javascript_shorten,
    .print_unread = print_unread,
};

// SPDX-License-Identifier: MIT
// other_texts: what programs of languages are known by in text (language_text.h) that have no
// folder of their own here: their stacks are the machine's, or their JIT's perf map names them.
#include "languages.h"

#include <ctype.h>
#include <string.h>

#include "memory.h"
#include "own_code.h"

// --- JavaScript

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

const struct language_text javascript_text = {
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
};

// --- Ruby

static const struct wait_rule ruby_waits[] = {
    {"gvl_acquire*", WAIT_NAME_RUNTIME_LOCK},
    {"thread_sched_to_running*", WAIT_NAME_RUNTIME_LOCK},
    {0},
};

static const char *const ruby_files[] = {"ruby", "ruby[0-9]*", "libruby*", NULL};

static bool ruby_is_packaged(const char *path)
{
	return strstr(path, "/lib/ruby/") || strstr(path, "/gems/");
}

const struct language_text ruby_text = {
    .waits = ruby_waits,
    .files = ruby_files,
    .is_packaged = ruby_is_packaged,
};

// --- C and C++

static const char *const native_lookups[] = {"getaddrinfo", "gethostbyname", "getnameinfo", NULL};
static const char *const native_results[] = {"std::__atomic_futex_unsigned", "std::__basic_future",
                                             NULL};

// They wait for their one connection in whatever way: poll, and what wakes them up as well.
static const char *const native_answers[] = {
    "curl_easy_perform",
    "PQgetResult",
    "mysql_real_query",
    NULL,
};

const struct language_text native_text = {
    .lookups = native_lookups, .results = native_results, .answers = native_answers};

// --- Those of which only the files are known

static const char *const other_files[] = {
    "perl",        "perl[0-9]*",          "libperl*", "dotnet", "libcoreclr.so", "libclrjit.so",
    "libhost*.so", "libSystem.Native.so", NULL,
};

const struct language_text other_text = {.files = other_files};

// SPDX-License-Identifier: MIT
// other_texts: what programs of languages are known by in text (language_text.h) that have no
// folder of their own here: their stacks are the machine's, or their JIT's perf map names them.
#include "languages.h"

#include <string.h>

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

static const char *const native_lookups[] = {
    "getaddrinfo", "gethostbyname", "getnameinfo", "__res_context_", "res_nquery", "res_nsearch",
    "res_query@",  "res_search@",   NULL,
};
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

// SPDX-License-Identifier: MIT
// python_text: what Python's programs are known by in text (language_text.h), and what a run tells
// of them.
#include "languages.h"

#include <string.h>

#include "own_code.h"
#include "text.h"

static const struct wait_rule waits[] = {
    {"take_gil", WAIT_NAME_RUNTIME_LOCK},
    {"PyThread_acquire_lock*", WAIT_NAME_BASE_LOCK},
    {"PyMutex_Lock*", WAIT_NAME_BASE_LOCK},
    {"Condition.wait", WAIT_NAME_RUNTIME_CONDITION},
    {"Thread._wait_for_tstate_lock", WAIT_NAME_RUNTIME_CONDITION}, // Thread.join
    {"queue_SimpleQueue_get*", WAIT_NAME_RUNTIME_CONDITION},
    {0},
};

static const char *const locks[] = {"GIL", NULL};

static const char *const files[] = {
    "python", "python[23]*", "libpython*", "pypy*", "libpypy*", NULL,
};

// The folder of a version's library, as in "/usr/lib/python3.11/".
static bool is_in_folder(const char *path)
{
	static const char *const ends[] = {"/", ".zip/", "zip/", "t/",
	                                   NULL}; // "t": without the GIL

	for (const char *at = path; (at = strstr(at, "/python")); at++) {
		const char *version = at + strlen("/python");
		const size_t length = strspn(version, "0123456789.");
		if (length >= 2 && text_begins_with_any(version + length, ends))
			return true;
	}
	return false;
}

static bool is_packaged(const char *path)
{
	return strstr(path, "/site-packages/") || strstr(path, "/dist-packages/") ||
	       is_in_folder(path);
}

static enum code_owner owner(const struct code_place *place)
{
	static const char *const frozen[] = {"<frozen ", NULL};

	return place->kind == MODULE_RUNTIME && text_begins_with_any(place->file, frozen)
	           ? CODE_OF_LANGUAGE
	           : CODE_OF_NOBODY;
}

const struct language_text python_text = {
    .waits = waits,
    .locks = locks,
    .files = files,
    .is_packaged = is_packaged,
    .owner = owner,
};

// SPDX-License-Identifier: MIT
#include "own_code.h"

#include <fnmatch.h>
#include <string.h>

#include "language_text.h"
#include "memory.h"
#include "symbolize.h"
#include "text.h"
#include "wait_kind.h"

// Compares the beginnings first: fnmatch takes long.
static bool matches(const char *text, const char *pattern)
{
	return strncmp(text, pattern, strcspn(pattern, "*[")) == 0 &&
	       fnmatch(pattern, text, 0) == 0;
}

static bool matches_any(const char *text, const char *const *patterns)
{
	for (size_t i = 0; patterns && patterns[i]; i++)
		if (matches(text, patterns[i]))
			return true;
	return false;
}

static bool is_packaged(const char *path)
{
	for (size_t i = 0; language_texts[i]; i++)
		if (language_texts[i]->is_packaged && language_texts[i]->is_packaged(path))
			return true;
	return false;
}

static enum code_owner owner_of(const struct code_place *place)
{
	enum code_owner owner = CODE_OF_NOBODY;

	for (size_t i = 0; language_texts[i] && owner == CODE_OF_NOBODY; i++)
		if (language_texts[i]->owner)
			owner = language_texts[i]->owner(place);
	return owner;
}

// Functions that a runtime has named, each in its own way.
static bool is_own_script(const struct code_place *place)
{
	return place->name[0] && !is_packaged(place->file) && owner_of(place) != CODE_OF_LANGUAGE;
}

// Code that was compiled as the program ran; its name may end with file and line.
static bool is_own_compiled(const struct code_place *place)
{
	for (size_t i = 0; language_texts[i]; i++)
		if (matches_any(place->name, language_texts[i]->inner))
			return false;
	return place->name[0] && !is_packaged(place->name) && owner_of(place) != CODE_OF_LANGUAGE;
}

static bool is_shared_library(const char *file_name)
{
	const char *suffix = strstr(file_name, ".so");

	return suffix && (suffix[3] == '\0' || suffix[3] == '.');
}

// Also where it lies in a folder of its own: conda, nix, an image of a language.
static bool is_runtime_file(const char *file_name)
{
	static const char *const patterns[] = {
	    "ld-*.so*",        "libc.so*",  "libc-[0-9]*.so",
	    "libpthread[.-]*", "libm.so*",  "libm-[0-9]*.so",
	    "libstdc++.so*",   "libgcc_s*", "libc++*.so*",
	    "lib[alt]san.so*", NULL,
	};

	for (size_t i = 0; language_texts[i]; i++)
		if (matches_any(file_name, language_texts[i]->files))
			return true;
	return matches_any(file_name, patterns);
}

static bool is_in_folder_of_language(const char *path)
{
	for (size_t i = 0; language_texts[i]; i++)
		if (language_texts[i]->folders &&
		    text_contains_any(path, language_texts[i]->folders))
			return true;
	return false;
}

static bool is_own_file(const char *path)
{
	static const char *const folders[] = {
	    "/lib/",       "/lib32/",     "/lib64/",      "/libx32/", "/usr/lib/",
	    "/usr/lib32/", "/usr/lib64/", "/usr/libx32/", NULL,
	};
	const char *slash = strrchr(path, '/');
	const char *file_name = slash ? slash + 1 : path;

	if (is_runtime_file(file_name) || is_packaged(path) || is_in_folder_of_language(path))
		return false;
	return !is_shared_library(file_name) || !text_begins_with_any(path, folders);
}

// A Rust symbol is marked as such: "_R", or a hash at its end ("17h" and 16 digits).
static bool is_rust(const char *system_name)
{
	const char *hash = strstr(system_name, "17h");

	return text_begins_with(system_name, "_R") ||
	       (text_begins_with(system_name, "_ZN") && hash &&
	        strspn(hash + 3, "0123456789abcdef") == 16);
}

static bool is_of_rust(const char *name)
{
	static const char *const crates[] = {"std::", "core::", "alloc::", NULL};

	return text_begins_with_any(name[0] == '<' ? name + 1 : name, crates);
}

// The name may begin with what the function returns, so that its symbol says more.
static bool is_of_cpp(const struct code_place *place)
{
	static const char *const symbols[] = {
	    "_ZSt",   "_ZNSt",  "_ZNKSt",     "_ZNSa",         "_ZNSb",          "_ZNSs",
	    "_ZNSi",  "_ZNSo",  "_ZNSd",      "_ZNKSs",        "_ZNKSb",         "_ZNKSi",
	    "_ZNKSo", "_ZNKSd", "_ZThn8_NSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx", NULL,
	};
	static const char *const names[] = {"std::", "__gnu_cxx::", "__cxxabiv1::", NULL};

	return text_begins_with_any(place->system_name, symbols) ||
	       text_begins_with_any(place->name, names);
}

// Functions of standard libraries that are linked into the program, or inlined.
static bool is_standard(const struct code_place *place)
{
	static const char *const starts[] = {
	    "_start",
	    "start_thread",
	    "clone",
	    "clone3",
	    "__clone",
	    "__clone3",
	    "__libc_start_main",
	    "__libc_start_call_main",
	};
	static const char *const sources[] = {"/usr/include/", "/usr/lib/", "/rustc/", NULL};
	const enum code_owner owner = owner_of(place);

	for (size_t i = 0; i < array_size(starts); i++)
		if (strcmp(place->name, starts[i]) == 0)
			return true;
	if (text_begins_with_any(place->file, sources) || strstr(place->file, "/rustlib/src/"))
		return true;
	if (owner != CODE_OF_NOBODY)
		return owner == CODE_OF_LANGUAGE;
	if (is_rust(place->system_name))
		return is_of_rust(place->name);
	return is_of_cpp(place) || wait_name_of(place->name, place->file) != WAIT_NAME_NOTHING;
}

bool own_code(const struct code_place *place)
{
	switch (place->kind) {
	case MODULE_FILE:
		return is_own_file(place->path) && !is_standard(place);
	case MODULE_RUNTIME:
		return is_own_script(place);
	case MODULE_ANONYMOUS:
	case MODULE_IMAGE:
		return is_own_compiled(place);
	default:
		return false;
	}
}

bool own_code_function(const struct module *module, const struct function *function)
{
	return own_code(&(struct code_place){
	    .kind = module->kind,
	    .path = module->path,
	    .name = function ? function->name : "",
	    .system_name = function ? function->system_name : "",
	    .file = function ? function->file : "",
	});
}

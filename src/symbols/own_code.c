// SPDX-License-Identifier: MIT
#include "own_code.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

#include "memory.h"
#include "symbolize.h"
#include "wait_kind.h"

static bool begins(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static bool begins_with_any(const char *text, const char *const *starts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (begins(text, starts[i]))
			return true;
	return false;
}

static bool contains_any(const char *text, const char *const *parts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(text, parts[i]))
			return true;
	return false;
}

// Compares the beginnings first: fnmatch takes long.
static bool matches(const char *text, const char *pattern)
{
	return strncmp(text, pattern, strcspn(pattern, "*[")) == 0 &&
	       fnmatch(pattern, text, 0) == 0;
}

static bool matches_any(const char *text, const char *const *patterns, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (matches(text, patterns[i]))
			return true;
	return false;
}

// The folder of a Python version's library, as in "/usr/lib/python3.11/".
static bool is_in_python_folder(const char *path)
{
	for (const char *at = path; (at = strstr(at, "/python")); at++) {
		const char *version = at + strlen("/python");
		const size_t length = strspn(version, "0123456789.");
		if (length >= 2 && (version[length] == '/' || begins(version + length, ".zip/") ||
		                    begins(version + length, "zip/") ||
		                    begins(version + length, "t/"))) // without the GIL
			return true;
	}
	return false;
}

// Files of source or of machine code that come with a language or its packages.
static bool is_packaged(const char *path)
{
	static const char *const parts[] = {
	    "/site-packages/", "/dist-packages/", "/node_modules/", "/lib/ruby/", "/gems/",
	};

	return contains_any(path, parts, array_size(parts)) || is_in_python_folder(path);
}

// Its first word may be what it returns: "void java.lang.Thread.sleep(long)".
static bool is_of_java(const char *name)
{
	static const char *const packages[] = {
	    "java.", "javax.", "jdk.", "sun.", "com.sun.", "Ljava/", "Ljavax/", "Ljdk/", "Lsun/",
	};
	const size_t length = strcspn(name, "(");
	const char *word = name;

	for (size_t i = 0; i < length; i++)
		if (name[i] == ' ')
			word = name + i + 1;
	return begins_with_any(word, packages, array_size(packages));
}

// Functions that a runtime has named, each language in its own way.
static bool is_own_script(const struct code_place *place)
{
	if (!place->name[0] || begins(place->file, "<frozen ") || begins(place->file, "node:"))
		return false;
	// A method has its class before a dot; what has none is the virtual machine's own code.
	if (strcmp(place->path, "[java]") == 0 && !strchr(place->name, '.'))
		return false;
	return !is_packaged(place->file) && !is_of_java(place->name);
}

// Code that was compiled as the program ran; its name may end with file and line.
static bool is_own_compiled(const char *name)
{
	static const char *const inner[] = {
	    "Builtin:*",   "BytecodeHandler:*", "Handler:*",      "RegExp:*",     "Stub:*",
	    "Interpreter", "StubRoutines*",     "I2C/C2I*",       "RuntimeStub*", "*Blob",
	    "vtable *",    "itable *",          "MethodHandles*",
	};

	if (!name[0] || matches_any(name, inner, array_size(inner)))
		return false;
	return !strstr(name, " node:") && !is_packaged(name) && !is_of_java(name);
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
	    "python",
	    "python[23]*",
	    "libpython*",
	    "pypy*",
	    "libpypy*",
	    "node",
	    "nodejs",
	    "libnode.so*",
	    "deno",
	    "bun",
	    "java",
	    "libj[lv][im]*.so",
	    "ruby",
	    "ruby[0-9]*",
	    "libruby*",
	    "php",
	    "php[0-9]*",
	    "php-fpm*",
	    "php-cgi*",
	    "libphp*",
	    "perl",
	    "perl[0-9]*",
	    "libperl*",
	    "beam.smp",
	    "dotnet",
	    "libcoreclr.so",
	    "libclrjit.so",
	    "libhost*.so",
	    "libSystem.Native.so",
	    "luajit*",
	    "lua",
	    "lua[0-9]*",
	    "liblua*",
	    "ld-*.so*",
	    "libc.so*",
	    "libc-[0-9]*.so",
	    "libpthread[.-]*",
	    "libm.so*",
	    "libm-[0-9]*.so",
	    "libstdc++.so*",
	    "libgcc_s*",
	    "libc++*.so*",
	    "libgo.so*",
	    "lib[alt]san.so*",
	};

	return matches_any(file_name, patterns, array_size(patterns));
}

static bool is_own_file(const char *path)
{
	static const char *const folders[] = {
	    "/lib/",     "/lib32/",     "/lib64/",     "/libx32/",
	    "/usr/lib/", "/usr/lib32/", "/usr/lib64/", "/usr/libx32/",
	};
	static const char *const java_folders[] = {"/jvm/", "/jdk", "/jre", "/openjdk"};
	const char *slash = strrchr(path, '/');
	const char *file_name = slash ? slash + 1 : path;

	if (is_runtime_file(file_name) || is_packaged(path) ||
	    contains_any(path, java_folders, array_size(java_folders)))
		return false;
	return !is_shared_library(file_name) ||
	       !begins_with_any(path, folders, array_size(folders));
}

static bool is_go_source(const char *file)
{
	const char *dot = strrchr(file, '.');

	return (dot && (strcmp(dot, ".go") == 0 || strcmp(dot, ".s") == 0)) ||
	       strstr(file, "<autogenerated>");
}

// By the package, as in "net/http.(*conn).serve": modules have a dot in its first part, or a name
// that the standard library does not have.
static bool is_of_go(const char *name)
{
	static const char *const packages[] = {
	    "archive", "arena",    "bufio",    "bytes",   "cmp",     "compress", "container",
	    "context", "crypto",   "database", "debug",   "embed",   "encoding", "errors",
	    "expvar",  "flag",     "fmt",      "go",      "hash",    "html",     "image",
	    "index",   "internal", "io",       "iter",    "log",     "maps",     "math",
	    "mime",    "net",      "os",       "path",    "plugin",  "reflect",  "regexp",
	    "runtime", "slices",   "sort",     "strconv", "strings", "structs",  "sync",
	    "syscall", "testing",  "text",     "time",    "type",    "unicode",  "unique",
	    "unsafe",  "vendor",   "weak",
	};
	static const char creator[] = "created by ";
	const char *start = begins(name, creator) ? name + strlen(creator) : name;
	const char *slash = strchr(start, '/'), *bracket = strpbrk(start, "[(");
	const size_t dot = strcspn(start, ".:");
	const size_t length =
	    slash && (!bracket || slash < bracket) ? (size_t)(slash - start) : dot;

	for (size_t i = 0; i < array_size(packages); i++)
		if (strlen(packages[i]) == length && strncmp(start, packages[i], length) == 0)
			return true;
	return !start[dot]; // assembly of the runtime's
}

// A Rust symbol is marked as such: "_R", or a hash at its end ("17h" and 16 digits).
static bool is_rust(const char *system_name)
{
	const char *hash = strstr(system_name, "17h");

	return begins(system_name, "_R") ||
	       (begins(system_name, "_ZN") && hash && strspn(hash + 3, "0123456789abcdef") == 16);
}

static bool is_of_rust(const char *name)
{
	static const char *const crates[] = {"std::", "core::", "alloc::"};

	return begins_with_any(name[0] == '<' ? name + 1 : name, crates, array_size(crates));
}

// The name may begin with what the function returns, so that its symbol says more.
static bool is_of_cpp(const struct code_place *place)
{
	static const char *const symbols[] = {
	    "_ZSt",   "_ZNSt",  "_ZNKSt",     "_ZNSa",         "_ZNSb",          "_ZNSs",
	    "_ZNSi",  "_ZNSo",  "_ZNSd",      "_ZNKSs",        "_ZNKSb",         "_ZNKSi",
	    "_ZNKSo", "_ZNKSd", "_ZThn8_NSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx",
	};
	static const char *const names[] = {"std::", "__gnu_cxx::", "__cxxabiv1::"};

	return begins_with_any(place->system_name, symbols, array_size(symbols)) ||
	       begins_with_any(place->name, names, array_size(names));
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
	static const char *const sources[] = {"/usr/include/", "/usr/lib/", "/rustc/"};

	for (size_t i = 0; i < array_size(starts); i++)
		if (strcmp(place->name, starts[i]) == 0)
			return true;
	if (begins_with_any(place->file, sources, array_size(sources)) ||
	    strstr(place->file, "/rustlib/src/"))
		return true;
	if (is_go_source(place->file))
		return is_of_go(place->name);
	if (is_rust(place->system_name))
		return is_of_rust(place->name);
	return is_of_cpp(place) || wait_name_of(place->name) != WAIT_NAME_NOTHING;
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
		return is_own_compiled(place->name);
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

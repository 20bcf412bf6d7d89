// SPDX-License-Identifier: MIT
#include "demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "compiled_symbol.h"

enum {
	STYLE = DMGL_PARAMS | DMGL_ANSI,
	// libiberty refuses names of more than half its recursion limit (cp-demangle.c, PR 87675),
	// which templates reach. Up to our own limit they need about 1 MB of stack.
	MAX_GUARDED_BYTES = 1024,
	// Limits the work that a D name may make, in bytes that its back references stand for.
	MAX_D_EXPANSION = 1 << 20,
};

// What the demanglers write to. They cannot be told to stop, so the way out is a jump; they keep
// what they have on the stack.
struct sink {
	char *text;
	size_t length, capacity;
	jmp_buf too_long;
};

static void sink_write(const char *text, size_t length, void *opaque)
{
	struct sink *sink = opaque;

	if (length == 0)
		return;
	if (length > DEMANGLE_MAX_OUTPUT_BYTES - sink->length)
		longjmp(sink->too_long, 1);
	sink->text = memory_grow(sink->text, &sink->capacity, sink->length + length + 1, 1);
	memcpy(sink->text + sink->length, text, length);
	sink->length += length;
	sink->text[sink->length] = '\0';
}

typedef int demangler_fn(const char *name, int options, demangle_callbackref callback,
                         void *opaque);

static bool run_into(struct sink *sink, demangler_fn *demangler, const char *name, int options)
{
	if (setjmp(sink->too_long) != 0)
		return false;
	return demangler(name, options, sink_write, sink) && sink->length > 0;
}

static char *run(demangler_fn *demangler, const char *name, int options)
{
	struct sink sink = {0};

	if (run_into(&sink, demangler, name, options))
		return sink.text;
	free(sink.text);
	return NULL;
}

static char *demangle_cxx(const char *name)
{
	int options = STYLE;

	if (strlen(name) >= MAX_GUARDED_BYTES)
		options |= DMGL_NO_RECURSE_LIMIT;
	return run(cplus_demangle_v3_callback, name, options);
}

static char *demangle_rust(const char *name)
{
	return run(rust_demangle_callback, name, STYLE);
}

// Returns how far back the back reference at `at` refers ('Q' and a number to the base of 26, whose
// last digit is a small letter); 0: it is not one.
static size_t d_back_reference(const char *name, size_t at)
{
	size_t distance = 0;

	for (size_t i = at + 1; isalpha((unsigned char)name[i]) && distance <= at; i++) {
		if (islower((unsigned char)name[i]))
			return distance * 26 + (size_t)(name[i] - 'a');
		distance = distance * 26 + (size_t)(name[i] - 'A');
	}
	return 0;
}

// True if the name can stand for more than we want to see. A type may refer to one before it, that
// one to another twice, and so on; libiberty writes it all out. Each reference is taken to stand
// for all the text between its aim and itself, or for one identifier.
static bool d_is_bomb(const char *name)
{
	size_t length = strlen(name);
	_cleanup_free_ uint64_t *size = memory_alloc((length + 1) * sizeof(*size));

	size[0] = 0; // size[i]: what the first i bytes stand for, at most
	for (size_t i = 0; i < length; i++) {
		uint64_t own = 1;
		size_t back = name[i] == 'Q' ? d_back_reference(name, i) : 0;

		if (back > 0 && back <= i && !isdigit((unsigned char)name[i - back]))
			own += size[i] - size[i - back];
		if (own > MAX_D_EXPANSION)
			return true;
		size[i + 1] = size[i] + own;
	}
	return false;
}

static char *demangle_d(const char *name)
{
	if (strcmp(name, "_Dmain") == 0)
		return memory_strdup("D main");
	if (!isdigit((unsigned char)name[2]) && name[2] != 'Q' && strncmp(name + 2, "__", 2) != 0)
		return NULL;
	return d_is_bomb(name) ? NULL : dlang_demangle(name, 0);
}

static char *demangle_whole(const char *name)
{
	if (name[0] != '_')
		return NULL;
	if (name[1] == 'R')
		return demangle_rust(name);
	if (name[1] == 'D')
		return demangle_d(name);
	if (name[1] != 'Z' && strncmp(name, "__Z", 3) != 0)
		return NULL;
	char *result = demangle_rust(name);
	return result ? result : demangle_cxx(name);
}

// Returns where a compiler's suffix begins (.cold, .part.0, .constprop.0.isra.0, .llvm.123), or
// NULL. Rust's older names have dots of their own, so the name proper ends at its last 'E'.
static const char *suffix_of(const char *name)
{
	const char *from = name;

	if (strncmp(name, "_ZN", 3) == 0) {
		const char *end = strrchr(name, 'E');
		from = end ? end : name;
	}
	const char *dot = strchr(from, '.');
	return dot && (islower((unsigned char)dot[1]) || isdigit((unsigned char)dot[1])) ? dot
	                                                                                 : NULL;
}

static char *demangle_without_suffix(const char *name)
{
	const char *suffix = suffix_of(name);

	if (!suffix || suffix == name)
		return NULL;
	_cleanup_free_ char *stem = memory_strndup(name, (size_t)(suffix - name));
	_cleanup_free_ char *whole = demangle_whole(stem);
	return whole ? memory_printf("%s [clone %s]", whole, suffix) : NULL;
}

char *demangle(const char *name)
{
	size_t length = strnlen(name, DEMANGLE_MAX_INPUT_BYTES + 1);

	if (length < 3 || length > DEMANGLE_MAX_INPUT_BYTES)
		return NULL;
	if (name[0] != '_')
		return compiled_symbol_name(name);
	// Versions are the linker's: _ZNSt6thread4joinEv@@GLIBCXX_3.4.11, _Z1fv@plt.
	const char *version = strchr(name, '@');
	if (version) {
		_cleanup_free_ char *stem = memory_strndup(name, (size_t)(version - name));
		_cleanup_free_ char *text = demangle(stem);
		bool is_plt = strcmp(version, "@plt") == 0;
		return text ? memory_printf("%s%s", text, is_plt ? "@plt" : "") : NULL;
	}
	// A Rust name with a suffix would pass for C++, hash and all: the stem first.
	char *result = demangle_rust(name);
	if (!result)
		result = demangle_without_suffix(name);
	if (!result)
		result = demangle_whole(name);
	char *compiled = compiled_symbol_name(result ? result : name);
	if (compiled)
		free(result);
	return compiled ? compiled : result;
}

char *demangle_or_copy(const char *name)
{
	char *text = demangle(name);

	if (text)
		return text;
	const char *version = strchr(name, '@');
	bool is_version = version && version != name && strcmp(version, "@plt") != 0;
	return memory_strndup(name, is_version ? (size_t)(version - name) : strlen(name));
}

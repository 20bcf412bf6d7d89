// SPDX-License-Identifier: MIT
#include "compiled_symbol.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "text.h"

enum {
	MAX_SYMBOL_BYTES = 4096,
	MAX_NESTED = 4, // a copy for types (__pyx_fuse_0) has the symbol of what it is a copy of
};

static const char wrapper[] = "__pyx_pw_";
static const char implementation[] = "__pyx_pf_";
static const char body[] = "__pyx_gb_";
static const char body_name[] = "generator";
static const char copy[] = "__pyx_fuse_";
static const char lambda[] = "__pyx_lambda_funcdef_";
static const char *const uncounted[] = {"__pyx_f_", "__pyx_getprop_", "__pyx_setprop_"};

static const char mypyc[] = "CPyDef_";
static const char mypyc_wrapper[] = "CPyPy_";
static const char mypyc_generator[] = "_gen.__mypyc_generator_helper__";

static bool ends(const char *text, const char *end)
{
	const size_t length = strlen(text), wanted = strlen(end);

	return length > wanted && strcmp(text + length - wanted, end) == 0;
}

// Behind "__pyx_fuse_0_1", or the text itself.
static const char *after_copy(const char *text)
{
	if (!text_begins_with(text, copy))
		return text;
	text += strlen(copy);
	text += strspn(text, "0123456789");
	while (text[0] == '_' && isdigit((unsigned char)text[1]))
		text += 1 + strspn(text + 1, "0123456789");
	return text;
}

// Cython writes "4shop_4till_4Till_" for what is in shop.till.Till. Before a function's own name it
// may count: "_3serve". Then "3add_up" is in doubt.
static bool is_scope(const char *text, size_t length, bool is_counted, bool is_implementation,
                     bool is_in_class)
{
	if (length == 0 || strnlen(text, length + 2) < length + 2 || text[length] != '_')
		return false;
	const char *next = text + length + 1;
	if (!is_counted || isdigit((unsigned char)next[0]) || text_begins_with(next, lambda))
		return true;
	// The first implementation has no number; wrappers have one, for they come after it.
	return is_implementation && (isupper((unsigned char)text[0]) || !is_in_class);
}

// Copies the scopes, each with a dot. Returns what follows them, and the number.
static const char *copy_scopes(char **to, const char *text, bool is_counted, bool is_implementation)
{
	bool is_in_class = false;

	while (isdigit((unsigned char)text[0])) {
		char *at;
		const unsigned long length = strtoul(text, &at, 10);
		if (length > MAX_SYMBOL_BYTES ||
		    !is_scope(at, length, is_counted, is_implementation, is_in_class))
			return is_counted ? at : text;
		is_in_class = isupper((unsigned char)at[0]);
		*to = mempcpy(*to, at, length);
		*(*to)++ = '.';
		text = at + length + 1;
	}
	return text;
}

// Returns the name of a symbol of Cython's without suffix; NULL: it is none.
static char *cython_name(const char *symbol, int depth)
{
	const char *text = after_copy(symbol);
	const bool is_body = text_begins_with(text, body),
	           is_implementation = text_begins_with(text, implementation);
	const bool is_counted = is_body || is_implementation || text_begins_with(text, wrapper);
	size_t skip = is_counted ? strlen(wrapper) : 0;

	if (text_begins_with(text, lambda))
		return memory_strdup("<lambda>");
	for (size_t i = 0; i < array_size(uncounted); i++)
		if (text_begins_with(text, uncounted[i]))
			skip = strlen(uncounted[i]);
	if (skip == 0 || !text[skip])
		return NULL;
	_cleanup_free_ char *scopes = memory_alloc(strlen(text) + 1);
	char *end = scopes;
	const char *name = copy_scopes(&end, text + skip, is_counted, is_implementation);
	*end = '\0';
	if (!name[0])
		return NULL;
	if (text_begins_with(name, lambda))
		return memory_printf("%s<lambda>", scopes);
	if (is_body && text_begins_with(name, body_name))
		return memory_printf("%s<generator>", scopes);
	char *inner = depth < MAX_NESTED ? cython_name(name, depth + 1) : NULL;
	return inner ? inner : memory_printf("%s%s", scopes, after_copy(name));
}

// mypyc writes "___" for a dot, and "___3_" for what was "___" before.
static char *mypyc_name(const char *symbol)
{
	const bool is_wrapper = text_begins_with(symbol, mypyc_wrapper);

	if (!is_wrapper && !text_begins_with(symbol, mypyc))
		return NULL;
	symbol += is_wrapper ? strlen(mypyc_wrapper) : strlen(mypyc);
	if (!symbol[0])
		return NULL;
	char *name = memory_alloc(strlen(symbol) + 1), *to = name;
	while (*symbol) {
		if (text_begins_with(symbol, "___3_")) {
			to = mempcpy(to, "___", 3);
			symbol += 5;
		} else if (text_begins_with(symbol, "___") && to > name) {
			*to++ = '.';
			symbol += 3;
		} else {
			*to++ = *symbol++;
		}
	}
	*to = '\0';
	if (ends(name, mypyc_generator))
		name[strlen(name) - strlen(mypyc_generator)] = '\0';
	return name;
}

// Returns what stands behind the symbol, and behind the parameters of C++: a compiler's suffix.
static char *suffix_of(const char *text)
{
	const char *bracket = strrchr(text, ')');

	if (text[0] == '.')
		return memory_printf(" [clone %s]", text);
	return memory_strdup(text[0] == '(' && bracket ? bracket + 1 : text);
}

char *compiled_symbol_name(const char *symbol)
{
	if (strnlen(symbol, MAX_SYMBOL_BYTES + 1) > MAX_SYMBOL_BYTES ||
	    (!text_begins_with(symbol, "__pyx_") && !text_begins_with(symbol, "CPy")))
		return NULL;
	const size_t length = strcspn(symbol, ".( @");
	_cleanup_free_ char *stem = memory_strndup(symbol, length);
	_cleanup_free_ char *name =
	    text_begins_with(symbol, "__pyx_") ? cython_name(stem, 0) : mypyc_name(stem);
	_cleanup_free_ char *suffix = suffix_of(symbol + length);
	return name ? memory_printf("%s%s", name, suffix) : NULL;
}

// Each function takes three numbers in a row: for what it does, for its wrapper, and for the body.
char *compiled_symbol_generator(const char *symbol)
{
	const char *name = text_begins_with(symbol, body) ? strstr(symbol, body_name) : NULL;
	const char *number;

	for (const char *next = name; next; next = strstr(next + 1, body_name))
		name = next;
	for (number = name; number && isdigit((unsigned char)number[-1]);)
		number--;
	const unsigned long n = number ? strtoul(number, NULL, 10) : 0;
	if (n == 0)
		return NULL;
	symbol += strlen(body);
	return memory_printf("%s%.*s%lu", wrapper, (int)(number - symbol), symbol, n - 1);
}

// The beginning ends with a number, which may be the length of a class's name, too.
bool compiled_symbol_is_maker(const char *symbol, const char *beginning)
{
	const size_t length = strlen(beginning);

	if (!text_begins_with(symbol, beginning) || isdigit((unsigned char)symbol[length]))
		return false;
	_cleanup_free_ char *name = compiled_symbol_name(symbol);
	return name && ends(name, symbol + length);
}

bool compiled_symbol_wraps(const char *outer, const char *inner)
{
	if (text_begins_with(outer, mypyc_wrapper))
		return text_begins_with(inner, mypyc) &&
		       strcmp(outer + strlen(mypyc_wrapper), inner + strlen(mypyc)) == 0;
	return text_begins_with(after_copy(outer), wrapper) &&
	       text_begins_with(inner, implementation);
}

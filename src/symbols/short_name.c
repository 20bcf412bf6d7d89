// SPDX-License-Identifier: MIT
#include "short_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "language_text.h"
#include "memory.h"
#include "text.h"

enum { MAX_DEPTH = 64, MAX_LENGTH = 1 << 13 };

static const char operator_word[] = "operator";
static const char after_operator[] = ")]}<>=!+-*/%^&|~,"; // what else a name may end with

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

// Returns the length of the operator's name at `text`, "operator<<" or "operator new"; 0: it is
// none.
static size_t operator_length(const char *name, const char *text)
{
	size_t length = strlen(operator_word);

	if (!text_begins_with(text, operator_word) || (text > name && is_word(text[-1])) ||
	    is_word(text[length]))
		return 0;
	if (text_begins_with(text + length, "()") || text_begins_with(text + length, "[]"))
		return length + 2;
	if (text[length] == ' ') // a conversion, new, delete or a literal's
		return length + strcspn(text + length, "(<");
	const size_t first = length;
	// Template arguments follow without a space, but where the operator ends with '<'.
	while (text[length] && strchr("<>=!+-*/%^&|~,", text[length]) &&
	       !(length > first && text[length] == '<' && text[length - 1] != '<'))
		length++;
	return length;
}

// Returns the bracket that ends what the bracket at `text` begins, or 0: it begins nothing.
static char partner(char bracket)
{
	static const char brackets[] = "<>()[]{}";
	const char *known = bracket ? strchr(brackets, bracket) : NULL;

	return known && (known - brackets) % 2 == 0 ? known[1] : '\0';
}

// Returns what follows the bracket at `text` and all up to its partner; NULL: it has none, or too
// many are nested.
static const char *after_bracket(const char *text)
{
	char ends[MAX_DEPTH];
	size_t depth = 0;

	for (; *text; text++) {
		if (partner(*text) && depth < MAX_DEPTH)
			ends[depth++] = partner(*text);
		else if (partner(*text))
			return NULL;
		else if (depth > 0 && *text == ends[depth - 1])
			depth--;
		else if (strchr(")]}", *text)) // '>' may be an arrow, or a comparison
			return NULL;
		if (depth == 0)
			return text + 1;
	}
	return NULL;
}

// Copies the type of Rust's "<&path::Type<T> as Trait>", which begins at `text`. Returns its
// length.
static size_t copy_rust_type(char *to, const char *text, const char *end)
{
	static const char *const words[] = {"&", "mut ", "dyn ", "impl "};
	size_t n = 0;

	text++;
	for (size_t i = 0; i < array_size(words); i++)
		if (text_begins_with(text, words[i]))
			text += strlen(words[i]);
	while (text < end - 1 && !text_begins_with(text, " as ")) {
		const char *after = *text == '<' ? after_bracket(text) : NULL;
		if (after)
			text = after;
		else
			to[n++] = *text++;
	}
	return n;
}

// Copies the name without template arguments. False: a bracket has no partner.
static bool drop_templates(char *to, const char *name)
{
	const char *start = to;
	bool follows_operator = false;

	for (const char *text = name; *text;) {
		const size_t length = operator_length(name, text);
		const char *angle =
		    follows_operator && text_begins_with(text, " <") ? text + 1 : text;
		follows_operator = length > 0;
		if (*angle != '<' || length) {
			memcpy(to, text, length ? length : 1);
			to += length ? length : 1;
			text += length ? length : 1;
			continue;
		}
		const char *end = after_bracket(angle);
		if (!end)
			return false;
		if (to == start && text_begins_with(end, "::"))
			to += copy_rust_type(to, angle, end);
		else if (to >= start + 2 && to[-1] == ':')
			to -= 2; // Rust's "::<T>"
		else if (to == start || (!is_word(to[-1]) && !strchr(after_operator, to[-1])))
			to = mempcpy(to, text, (size_t)(end - text)); // Python's "f.<locals>.g"
		text = end;
	}
	*to = '\0';
	return true;
}

// Removes parameters: those at the end with all that follows, and those of functions in which the
// function is defined, as in "f(int)::g(long) const". Returns whether the name had any at its end.
static bool drop_parameters(char *name)
{
	for (char *text = name; *text; text++) {
		const size_t length = operator_length(name, text);
		const char *end = *text == '(' ? after_bracket(text) : NULL;
		if (length) {
			text += length - 1;
			continue;
		}
		if (*text == '(' && !end)
			return false;
		if (!end)
			continue;
		if (text_begins_with(end, " const::"))
			end += strlen(" const");
		// Not so "(anonymous namespace)::f", a lambda's "{lambda()#1}" and Go's "(*conn)".
		const bool follows =
		    text > name && (is_word(text[-1]) || strchr(after_operator, text[-1]));
		if (follows && (*end == '\0' || *end == ' ' || *end == '&')) {
			*text = '\0';
			return true;
		}
		if (follows && text_begins_with(end, "::"))
			memmove(text, end, strlen(end) + 1);
		else
			text += end - text;
		text--;
	}
	return false;
}

// Returns what follows the returned type, which names of templates begin with.
static char *after_type(char *name)
{
	char *start = name;

	if (strstr(name, " for ") || strstr(name, " thunk to "))
		return name;
	for (char *text = name; *text && !operator_length(name, text); text++) {
		const char *end = partner(*text) ? after_bracket(text) : NULL;
		if (end)
			text += end - text - 1;
		else if (*text == ' ' || ((*text == '*' || *text == '&') && text > name))
			start = text + 1;
	}
	return *start ? start : name;
}

char *short_name(const char *name)
{
	const char *slash = strchr(name, '/');

	for (size_t i = 0; language_texts[i]; i++) {
		char *shorter =
		    language_texts[i]->shorten ? language_texts[i]->shorten(name) : NULL;
		if (shorter)
			return shorter;
	}
	// It has no name, a monstrous one, or one of Go's with a path.
	if (name[0] == '[' || strlen(name) > MAX_LENGTH || (slash && !strstr(name, "operator/")))
		return memory_strdup(name);
	_cleanup_free_ char *text = memory_strdup(name);
	if (!drop_templates(text, name) || !text[0])
		return memory_strdup(name);
	return memory_strdup(drop_parameters(text) ? after_type(text) : text);
}

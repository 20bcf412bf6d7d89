// SPDX-License-Identifier: MIT
#include "v8_functions.h"

#include <stdlib.h>
#include <string.h>

#include "frame_names.h"
#include "memory.h"

enum {
	MAX_FUNCTIONS = 1 << 16,
	MAX_LINES = 1 << 22, // of all scripts
	MAX_NAME = 1024,     // bytes
	MAX_FILE = 4096,
	// ScopeInfo: flags, the number of parameters, and the number of variables in the context.
	N_VARIABLES = 2, // the number of that word, after the Map
	MAX_VARIABLES = 1 << 16,
	MAX_INLINE_VARIABLES = 75, // if there are more, their names are in a table
	WORDS_AFTER = 8,           // in which the function's name and place are
};

static void clear(struct v8_functions *functions)
{
	for (size_t i = 0; i < functions->n_scripts; i++) {
		free(functions->scripts[i].file);
		free(functions->scripts[i].lines.ends);
	}
	functions->n = functions->n_scripts = functions->n_lines = 0;
	hash_index_clear(&functions->index);
	hash_index_clear(&functions->script_index);
}

void v8_functions_deinit(struct v8_functions *functions)
{
	clear(functions);
	free(functions->items);
	free(functions->scripts);
	hash_index_deinit(&functions->index);
	hash_index_deinit(&functions->script_index);
}

struct v8_identity v8_identity_of(const struct v8_layout *layout, uint64_t shared,
                                  const uint8_t *shared_bytes, const uint8_t *script_bytes)
{
	uint32_t literal;

	memcpy(&literal, shared_bytes + layout->shared_script + V8_SHARED_LITERAL, sizeof(literal));
	return (struct v8_identity){
	    .shared = shared,
	    .map = v8_word_at(shared_bytes, 0),
	    .name = v8_word_at(shared_bytes, layout->shared_name),
	    .literal = literal,
	    .script = {v8_word_at(shared_bytes, layout->shared_script),
	               v8_word_at(script_bytes, V8_SCRIPT_NAME),
	               v8_word_at(script_bytes, V8_SCRIPT_ID)},
	};
}

static uint64_t hash_words(const void *key, size_t size)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < size; i += sizeof(uint64_t))
		hash = hash_mix(hash, v8_word_at(key, (int32_t)i));
	return hash;
}

static bool function_equal(const void *context, uint32_t id, const void *key)
{
	const struct v8_functions *functions = context;

	return memcmp(&functions->items[id].identity, key, sizeof(struct v8_identity)) == 0;
}

static bool script_equal(const void *context, uint32_t id, const void *key)
{
	const struct v8_functions *functions = context;

	return memcmp(&functions->scripts[id].identity, key, sizeof(struct v8_script_identity)) ==
	       0;
}

// True if the function is as it was when the identity was made.
static bool is_same(const struct v8_layout *layout, const struct v8_memory *memory,
                    const struct v8_identity *identity)
{
	uint8_t shared[V8_SHARED_BYTES], script[V8_SCRIPT_BYTES] = {0};

	if (!v8_read_object(memory, identity->shared, shared, sizeof(shared)))
		return false;
	v8_read_object(memory, v8_word_at(shared, layout->shared_script), script, sizeof(script));
	const struct v8_identity now = v8_identity_of(layout, identity->shared, shared, script);
	return memcmp(&now, identity, sizeof(now)) == 0;
}

static bool is_string(const struct v8_layout *layout, const struct v8_memory *memory,
                      uint64_t value)
{
	const int32_t type = v8_type(memory, value);

	return type >= 0 && type < layout->non_string;
}

// Returns the number of the word after the variables of a ScopeInfo; -1: it is none.
static int32_t after_variables(const struct v8_layout *layout, const struct v8_memory *memory,
                               uint64_t scope)
{
	uint64_t word;

	if (!v8_read_object(memory, scope + 8 + 8 * N_VARIABLES, &word, sizeof(word)) ||
	    !v8_is_smi(word))
		return -1;
	const int32_t n = v8_smi(word);
	if (n < 0 || n > MAX_VARIABLES)
		return -1;
	return layout->scope_first + (n < MAX_INLINE_VARIABLES ? 2 * n : 1 + n);
}

// True if both may be where a function begins and ends.
static bool are_places(uint64_t start, uint64_t end)
{
	return v8_is_smi(start) && v8_is_smi(end) && v8_smi(start) >= 0 &&
	       v8_smi(start) < v8_smi(end);
}

// True if the words of a ScopeInfo from the n-th on are still these. If a string that they point to
// is moved, they change.
static bool has_words(const struct v8_memory *memory, uint64_t scope, int32_t first,
                      const uint64_t *words, size_t n)
{
	uint64_t now[WORDS_AFTER];

	return n == 0 || (v8_read_object(memory, scope + 8 + 8 * (uint64_t)first, now, 8 * n) &&
	                  memcmp(now, words, 8 * n) == 0);
}

// Finds the name and the place of the first character in a ScopeInfo (scope-info.tq). After the
// variables come, if it is a function's, its name, a Smi, and a guessed name or another object;
// and in older versions where it begins and ends. Of a module, a Smi comes before that.
static bool read_scope(const struct v8_layout *layout, const struct v8_memory *memory,
                       uint64_t scope, char name[MAX_NAME], int32_t *ret_start)
{
	const int32_t first = after_variables(layout, memory, scope);
	uint64_t words[WORDS_AFTER] = {0}, start;
	size_t i = 0;

	if (first < 0)
		return false;
	// It may be the last object before memory that is not there.
	size_t n = WORDS_AFTER;
	while (n > 0 && !v8_read_object(memory, scope + 8 + 8 * (uint64_t)first, words, 8 * n))
		n--;
	if (is_string(layout, memory, words[0])) {
		if (!v8_string_read(memory, words[0], name, MAX_NAME))
			return false;
		i = 2;
		if (name[0] == '\0' && is_string(layout, memory, words[i]) &&
		    !v8_string_read(memory, words[i], name, MAX_NAME))
			return false;
		i += v8_is_object(words[i]);
	}
	if (!layout->scope_start)
		*ret_start = are_places(words[i], words[i + 1])       ? v8_smi(words[i])
		             : are_places(words[i + 1], words[i + 2]) ? v8_smi(words[i + 1])
		                                                      : -1;
	else if (v8_read_object(memory, scope + (uint64_t)layout->scope_start, &start,
	                        sizeof(start)) &&
	         v8_is_smi(start))
		*ret_start = v8_smi(start);
	return has_words(memory, scope, first, words, n);
}

static bool read_name(const struct v8_layout *layout, const struct v8_memory *memory,
                      uint64_t value, char name[MAX_NAME], int32_t *ret_start)
{
	name[0] = '\0';
	*ret_start = -1;
	if (v8_is_smi(value))
		return true; // it has none
	if (v8_type(memory, value) == layout->scope)
		return read_scope(layout, memory, value, name, ret_start);
	return is_string(layout, memory, value) && v8_string_read(memory, value, name, MAX_NAME);
}

static uint32_t find_script(const struct v8_functions *functions,
                            const struct v8_script_identity *identity)
{
	return hash_index_find(&functions->script_index, hash_words(identity, sizeof(*identity)),
	                       script_equal, functions, identity);
}

// Finds the lines of a script's source, which may be moved meanwhile. False: to be tried again.
static bool read_lines(const struct v8_memory *memory, uint64_t script, struct v8_lines *ret)
{
	uint64_t source, now = 0;

	if (!v8_read_object(memory, script + V8_SCRIPT_SOURCE, &source, sizeof(source)))
		return false;
	v8_string_lines(memory, source, ret);
	if (*memory->n_left > 0 &&
	    v8_read_object(memory, script + V8_SCRIPT_SOURCE, &now, sizeof(now)) && now == source)
		return true;
	free(ret->ends);
	*ret = (struct v8_lines){0};
	return false;
}

// Reads a script; with an empty file if it has no name.
static bool read_script(const struct v8_functions *functions, const struct v8_memory *memory,
                        const struct v8_script_identity *identity, struct v8_script *ret)
{
	char file[MAX_FILE] = "";
	uint64_t first_line;

	if (v8_type(memory, identity->script) != functions->layout->script ||
	    !v8_read_object(memory, identity->script + V8_SCRIPT_FIRST_LINE, &first_line,
	                    sizeof(first_line)))
		return false;
	if (is_string(functions->layout, memory, identity->name) &&
	    !v8_string_read(memory, identity->name, file, sizeof(file)))
		return false;
	*ret = (struct v8_script){
	    .identity = *identity,
	    .first_line = v8_is_smi(first_line) ? v8_smi(first_line) : 0,
	};
	if (!read_lines(memory, identity->script, &ret->lines))
		return false;
	ret->file = memory_strdup(file);
	return true;
}

static void add_script(struct v8_functions *functions, const struct v8_script *script)
{
	*array_push(functions->scripts, functions->n_scripts, functions->scripts_capacity) =
	    *script;
	functions->n_lines += script->lines.n;
	hash_index_insert(&functions->script_index,
	                  hash_words(&script->identity, sizeof(script->identity)),
	                  (uint32_t)(functions->n_scripts - 1));
}

// Returns the line of a character, counted from 1; 0: not known.
static uint32_t line_of(const struct v8_script *script, int32_t at)
{
	size_t low = 0, high = script->lines.n;

	if (!script->lines.ends || at < 0)
		return 0;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (script->lines.ends[middle] < (uint32_t)at)
			low = middle + 1;
		else
			high = middle;
	}
	const int64_t line = (int64_t)low + script->first_line + 1;
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

static bool read_function(struct v8_functions *functions, const struct v8_memory *memory,
                          const struct v8_identity *identity, struct v8_function *ret)
{
	const struct v8_layout *layout = functions->layout;
	struct v8_script read = {0};
	char name[MAX_NAME];
	int32_t start;

	if (v8_map_type(memory, identity->map) != layout->shared ||
	    !read_name(layout, memory, identity->name, name, &start))
		return false;
	uint32_t number = find_script(functions, &identity->script);
	const bool has_script =
	    number != HASH_NONE || read_script(functions, memory, &identity->script, &read);
	// V8's own functions have another object there.
	const int32_t type = has_script ? 0 : v8_type(memory, identity->script.script);
	const bool lacks_script = !has_script && (type < 0 || type == layout->script);
	if (lacks_script || !is_same(layout, memory, identity)) {
		free(read.file);
		free(read.lines.ends);
		return false;
	}
	if (has_script && number == HASH_NONE) {
		add_script(functions, &read);
		number = (uint32_t)(functions->n_scripts - 1);
	}
	const struct v8_script *script = has_script ? &functions->scripts[number] : NULL;
	*ret = (struct v8_function){
	    .identity = *identity,
	    .script = has_script ? number : UINT32_MAX,
	    .line = script ? line_of(script, start) : 0,
	};
	ret->function = frame_names_add(functions->names, name[0] ? name : "(anonymous)",
	                                script ? script->file : "", ret->line);
	return ret->function != FRAME_NAMES_NONE;
}

const struct v8_function *v8_functions_get(struct v8_functions *functions,
                                           const struct v8_memory *memory,
                                           const struct v8_identity *identity)
{
	const uint64_t hash = hash_words(identity, sizeof(*identity));
	const uint32_t id =
	    hash_index_find(&functions->index, hash, function_equal, functions, identity);
	struct v8_function function;

	if (id != HASH_NONE)
		return &functions->items[id];
	if (functions->n >= MAX_FUNCTIONS || functions->n_scripts >= MAX_FUNCTIONS ||
	    functions->n_lines > MAX_LINES)
		clear(functions);
	if (!read_function(functions, memory, identity, &function))
		return NULL;
	*array_push(functions->items, functions->n, functions->capacity) = function;
	hash_index_insert(&functions->index, hash, (uint32_t)(functions->n - 1));
	return &functions->items[functions->n - 1];
}

// SPDX-License-Identifier: MIT
#include "frame_names.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

void frame_names_deinit(struct frame_names *names)
{
	for (size_t i = 0; i < names->n_functions; i++) {
		free(names->functions[i].name);
		free(names->functions[i].file);
	}
	free(names->functions);
	hash_index_deinit(&names->index);
	*names = (struct frame_names){0};
}

struct function_key {
	const char *name, *file;
	uint32_t start_line;
};

static bool function_equal(const void *context, uint32_t id, const void *key)
{
	const struct frame_function *a = &((const struct frame_names *)context)->functions[id - 1];
	const struct function_key *b = key;

	return a->start_line == b->start_line && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->file, b->file) == 0;
}

uint32_t frame_names_add(struct frame_names *names, const char *name, const char *file,
                         uint32_t start_line)
{
	const struct function_key key = {name, file, start_line};
	const uint64_t hash = hash_mix(
	    hash_mix(hash_bytes(name, strlen(name)), hash_bytes(file, strlen(file))), start_line);
	const uint32_t known = hash_index_find(&names->index, hash, function_equal, names, &key);

	if (known != HASH_NONE)
		return known;
	if (names->n_functions == FRAME_NAMES_MAX)
		return FRAME_NAMES_NONE;
	*array_push(names->functions, names->n_functions, names->functions_capacity) =
	    (struct frame_function){memory_strdup(name), memory_strdup(file), start_line};
	hash_index_insert(&names->index, hash, names->n_functions);
	return names->n_functions;
}

void frame_names_set(struct frame_names *names, uint64_t number, const char *name, const char *file,
                     uint32_t start_line)
{
	if (number == FRAME_NAMES_NONE || number > FRAME_NAMES_MAX)
		return;
	while (names->n_functions < number)
		*array_push(names->functions, names->n_functions, names->functions_capacity) =
		    (struct frame_function){0};
	struct frame_function *function = &names->functions[number - 1];
	free(function->name);
	free(function->file);
	*function = (struct frame_function){memory_strdup(name), memory_strdup(file), start_line};
}

const struct frame_function *frame_names_find(const struct frame_names *names, uint64_t address,
                                              uint32_t *ret_line)
{
	const uint64_t function = address >> 32;

	*ret_line = (uint32_t)address;
	if (function == FRAME_NAMES_NONE || function > names->n_functions)
		return NULL;
	return names->functions[function - 1].name ? &names->functions[function - 1] : NULL;
}

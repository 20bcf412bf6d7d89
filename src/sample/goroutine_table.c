// SPDX-License-Identifier: MIT
#include "goroutine_table.h"

#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "go_program.h"
#include "memory.h"
#include "module.h"

enum { MAX_KINDS = 1 << 16 };

void goroutine_table_deinit(struct goroutine_table *table)
{
	for (size_t i = 0; i < table->n_kinds; i++) {
		free(table->kinds[i].name);
		free(table->kinds[i].ended);
	}
	free(table->kinds);
	free(table->entries);
	hash_index_deinit(&table->entry_index);
	hash_index_deinit(&table->kind_index);
	*table = (struct goroutine_table){0};
}

static bool entry_equal(const void *context, uint32_t id, const void *key)
{
	const struct goroutine_table *table = context;

	return table->entries[id].seen.address == *(const uint64_t *)key;
}

struct goroutine_entry *goroutine_table_get(struct goroutine_table *table, uint64_t address)
{
	const uint64_t hash = hash_mix(address, 0);
	uint32_t id = hash_index_find(&table->entry_index, hash, entry_equal, table, &address);

	if (id != HASH_NONE)
		return &table->entries[id];
	id = table->n_entries;
	*array_push(table->entries, table->n_entries, table->entries_capacity) =
	    (struct goroutine_entry){.seen.address = address, .thread = GOROUTINE_NONE};
	hash_index_insert(&table->entry_index, hash, id);
	return &table->entries[id];
}

static bool kind_equal(const void *context, uint32_t id, const void *key)
{
	const struct goroutine_table *table = context;
	const struct goroutine *goroutine = key;

	return table->kinds[id].start_pc == goroutine->start_pc &&
	       table->kinds[id].creator_pc == goroutine->creator_pc;
}

// True for the goroutines that the runtime itself calls its own (proc.go, isSystemGoroutine).
static bool is_system(const char *name)
{
	static const char *const users[] = {"runtime.main", "runtime.corostart",
	                                    "runtime.handleAsyncEvent"};

	for (size_t i = 0; i < array_size(users); i++)
		if (strcmp(name, users[i]) == 0)
			return false;
	return strncmp(name, "runtime.", strlen("runtime.")) == 0;
}

// True for those that call finalizers and cleanups: they are the program's while they do.
static bool calls_back(const char *name)
{
	return strcmp(name, "runtime.runfinq") == 0 || strcmp(name, "runtime.runFinalizers") == 0 ||
	       strcmp(name, "runtime.runCleanups") == 0;
}

// Returns the function's name without the linker's mark of the assembly's calling convention.
static char *name_of(const struct go_program *program, uint64_t pc)
{
	const char *name = go_program_function(program, pc, NULL);
	const char *mark = name ? strstr(name, ".abi0") : NULL;

	if (!name)
		return memory_strdup("");
	return mark && mark[strlen(".abi0")] == '\0' ? memory_strndup(name, (size_t)(mark - name))
	                                             : memory_strdup(name);
}

static uint32_t creator_of(const struct goroutine *goroutine, const char *name,
                           struct address_space *space, struct profile *profile)
{
	// The main goroutine was not started by a goroutine.
	if (goroutine->creator_pc == 0 || strcmp(name, "runtime.main") == 0)
		return GOROUTINE_NONE;
	const struct code_address code = address_space_resolve(space, goroutine->creator_pc - 1);
	if (code.module->kind != MODULE_FILE)
		return GOROUTINE_NONE;
	return profile_intern_code(profile, code.module->index, code.address, LOCATION_CREATOR);
}

uint32_t goroutine_table_kind(struct goroutine_table *table, const struct goroutine *goroutine,
                              const struct go_program *program, struct address_space *space,
                              struct profile *profile)
{
	const uint64_t hash = hash_mix(goroutine->start_pc, goroutine->creator_pc);
	uint32_t id = hash_index_find(&table->kind_index, hash, kind_equal, table, goroutine);

	if (id != HASH_NONE)
		return id;
	if (table->n_kinds == 0)
		*array_push(table->kinds, table->n_kinds, table->kinds_capacity) =
		    (struct goroutine_kind){.name = memory_strdup(""), .creator = GOROUTINE_NONE};
	if (table->n_kinds == MAX_KINDS)
		return 0; // nothing is known of it
	char *name = name_of(program, goroutine->start_pc);
	id = table->n_kinds;
	*array_push(table->kinds, table->n_kinds, table->kinds_capacity) = (struct goroutine_kind){
	    .start_pc = goroutine->start_pc,
	    .creator_pc = goroutine->creator_pc,
	    .name = name,
	    .is_system = is_system(name),
	    .calls_back = calls_back(name),
	    .is_wrapper = go_program_is_wrapper(program, goroutine->start_pc),
	    .creator = creator_of(goroutine, name, space, profile),
	};
	hash_index_insert(&table->kind_index, hash, id);
	return id;
}

void goroutine_table_name(struct goroutine_table *table, uint32_t kind,
                          const struct go_program *program, const struct profile *profile,
                          const uint32_t *location_ids, size_t n)
{
	enum { CALLED = 3 }; // from the root on: runtime.goexit, the wrapper, what it calls
	struct goroutine_kind *known = &table->kinds[kind];

	if (!known->is_wrapper || n < CALLED)
		return;
	const struct location *called = &profile->locations[location_ids[n - CALLED]];
	if (called->module != program->module->index)
		return;
	char *name = name_of(program, called->address + program->bias);
	if (!name[0]) {
		free(name);
		return;
	}
	free(known->name);
	known->name = name;
	known->is_wrapper = false;
}

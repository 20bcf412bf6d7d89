// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <string.h>

#include "address_space.h"
#include "maps.h"
#include "memory.h"
#include "module.h"
#include "python.h"
#include "python_pieces.h"
#include "resident.h"
#include "runtimes.h"

enum {
	MIN_MINOR = 14,
	MAX_CHAIN = 32,       // of those that wait for each other
	MAX_TASK_BYTES = 512, // of a task, up to its last field
	MAX_STATE_BYTES = 1 << 16,
};

// Words of struct _Py_AsyncioModuleDebugOffsets (Modules/_asynciomodule.c).
enum {
	WORD_TASK_NAME = 1,
	WORD_AWAITED_BY = 2,
	WORD_IS_TASK = 3,
	WORD_AWAITED_BY_MANY = 4,
	WORD_RUNNING_TASK = 11,
	N_WORDS = 13,
};

struct section {
	struct module *module;
	uint64_t address;
	bool found;
};

static void find_section(void *context)
{
	struct section *section = context;

	section->found = module_find_section(section->module, ".AsyncioDebug", &section->address);
}

// True if a field lies in the last of so many words of a task.
static bool is_used(const uint64_t words[N_WORDS], uint32_t bytes)
{
	for (size_t i = WORD_TASK_NAME; i <= WORD_AWAITED_BY_MANY; i++)
		if (words[i] + sizeof(uint64_t) > bytes - sizeof(uint64_t))
			return true;
	return false;
}

// True if the file, of whose code this is a mapping, keeps tasks, and says where.
static bool read_offsets(struct python *python, int tid, const struct mapping *mapping)
{
	struct address_space *space = python->setup->space;
	const struct code_address code = address_space_resolve(space, mapping->start);
	struct section section = {.module = code.module};
	uint64_t words[N_WORDS];

	if (!code.module || code.module->kind != MODULE_FILE)
		return false;
	module_guard(code.module, find_section, &section, MODULE_FOR_RULES);
	const uint64_t address = section.address + mapping->start - code.address;
	if (!section.found ||
	    !resident_read(python->setup->resident, tid, address, words, sizeof(words)))
		return false;
	for (size_t i = WORD_TASK_NAME; i <= WORD_AWAITED_BY_MANY; i++)
		if (words[i] > MAX_TASK_BYTES - sizeof(uint64_t))
			return false;
	if (words[WORD_RUNNING_TASK] > MAX_STATE_BYTES)
		return false;
	python->tasks.name = words[WORD_TASK_NAME];
	python->tasks.awaited_by = words[WORD_AWAITED_BY];
	python->tasks.is_task = words[WORD_IS_TASK];
	python->tasks.awaited_by_many = words[WORD_AWAITED_BY_MANY];
	python->tasks.bytes = MAX_TASK_BYTES;
	while (python->tasks.bytes > sizeof(uint64_t) && !is_used(words, python->tasks.bytes))
		python->tasks.bytes -= sizeof(uint64_t);
	python->tasks.running = words[WORD_RUNNING_TASK];
	return true;
}

void python_tasks_update(struct python *python, int tid)
{
	const struct address_space *space = python->setup->space;
	const struct maps *maps = &space->maps;

	if (python->layout.minor < MIN_MINOR || python->layout.is_guess || python->tasks.running ||
	    python->tasks.generation == space->generation)
		return;
	python->tasks.generation = space->generation;
	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->items[i];
		const char *path =
		    mapping->inode && mapping->executable ? maps_path(maps, mapping) : "";
		const bool is_interpreter =
		    python->eval - mapping->start < mapping->end - mapping->start;
		if ((is_interpreter || strstr(path, "/_asyncio.")) &&
		    read_offsets(python, tid, mapping))
			return;
	}
}

// With the tasks, and what else can be awaited, from the one that is executed on.
void python_tasks_read(const struct python *python, struct python_pieces *pieces, uint64_t task,
                       struct python_note *note)
{
	const struct python_tasks *tasks = &python->tasks;
	uint8_t bytes[MAX_TASK_BYTES];

	for (size_t i = 0; task && i < MAX_CHAIN && note->n_tasks < PYTHON_MAX_TASKS; i++) {
		struct python_task *to = &note->tasks[note->n_tasks];
		if (!python_pieces_read(pieces, task, bytes, tasks->bytes))
			return;
		note->n_tasks += bytes[tasks->is_task] == 1 &&
		                 python_pieces_read(pieces, python_word_at(bytes, tasks->name),
		                                    to->name, sizeof(to->name));
		note->has_more_tasks = bytes[tasks->awaited_by_many];
		task = note->has_more_tasks ? 0 : python_word_at(bytes, tasks->awaited_by);
	}
	note->has_more_tasks |= task != 0;
}

// One that the program gave no name has a number, of which asyncio makes one when it is asked for:
// an int (Include/cpython/longintrepr.h).
static char *counted_name(const struct python *python, const struct python_task *task)
{
	const uint32_t tag_at = python->layout.object_type + 8;
	const uint64_t n_digits = python_word_at(task->name, tag_at) >> 3;
	const uint64_t digits = python_word_at(task->name, tag_at + 8);

	if (n_digits == 0 || n_digits > 2)
		return NULL;
	return memory_printf("Task-%" PRIu64, n_digits == 1
	                                          ? digits & UINT32_MAX
	                                          : (digits & UINT32_MAX) | digits >> 32 << 30);
}

char *python_tasks_name(const struct python *python, const struct python_task *task)
{
	char *name = python_codes_text(python, task->name, sizeof(task->name));

	return name ? name : counted_name(python, task);
}

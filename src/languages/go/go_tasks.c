// SPDX-License-Identifier: MIT
#include "languages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "go_labels.h"
#include "go_program.h"
#include "go_stacks.h"
#include "goroutine_copies.h"
#include "goroutines.h"
#include "memory.h"
#include "module.h"
#include "run_stats.h"
#include "runtimes.h"
#include "text.h"

enum { MAX_TRIES = 12 }; // to find the runtime's list; the pauses between them grow

struct go_tasks {
	const struct runtimes_setup *setup; // borrowed
	bool found;                         // program is one whose goroutines can be read
	struct go_program program;
	uint32_t generation; // the address space's generation when Go was looked for
	uint64_t n_rules;    // how many unwinding rules there were at the last tick
	size_t n_files;      // how many files with Go's code stacks had shown by then
	uint64_t tries;      // how many ticks have looked for it and not found it
	uint64_t try_tick;   // when to look for it again
	struct goroutine_list list;
	struct goroutine_copies copies; // of many
	struct goroutine_copies copy;   // of one
};

static struct go_memory memory_of(const struct go_tasks *tasks, int tid)
{
	return (struct go_memory){tid, tasks->setup->resident};
}

static void *tasks_begin(const struct runtimes_setup *setup)
{
	struct go_tasks *tasks = memory_alloc_zeroed(1, sizeof(*tasks));

	tasks->setup = setup;
	return tasks;
}

static void tasks_end(void *context)
{
	struct go_tasks *tasks = context;

	go_program_deinit(&tasks->program);
	goroutine_list_deinit(&tasks->list);
	goroutine_copies_deinit(&tasks->copies);
	goroutine_copies_deinit(&tasks->copy);
	free(tasks);
}

// --- The program

static void note_program(const struct go_tasks *tasks)
{
	const struct go_program *program = &tasks->program;
	struct run_tasks *figures = &tasks->setup->stats->tasks;

	snprintf(figures->version, sizeof(figures->version), "%s", program->version);
	figures->refused = program->refused;
	figures->guessed_minor = program->guessed_minor;
	figures->n_others = program->n_others;
	const char *path = program->other ? program->other->path : "";
	const char *slash = strrchr(path, '/');
	snprintf(figures->other, sizeof(figures->other), "%s", slash ? slash + 1 : path);
}

static bool is_same_program(const struct go_program *a, const struct go_program *b)
{
	return a->module == b->module && a->bias == b->bias && a->list_length == b->list_length &&
	       !b->refused;
}

// Nothing else leads to a library whose goroutines are all parked than its code in a stack.
static bool has_new_code(const void *context, uint64_t n_rules)
{
	const struct go_tasks *tasks = context;
	const struct address_space *space = tasks->setup->space;

	return tasks->generation != space->generation ||
	       (tasks->n_rules != n_rules && tasks->n_files != go_program_count_files(space));
}

static void note_walk(void *context)
{
	const struct go_tasks *tasks = context;
	const struct go_offsets *offsets = &tasks->program.offsets;
	const bool has_labels = tasks->found && offsets->labels != GO_NO_FIELD;

	go_stacks_set_fields(tasks->setup->space, tasks->found ? offsets->goid : 0,
	                     tasks->found ? offsets->status : 0, has_labels ? offsets->labels : 0);
}

// Takes the program that was found, or none. Returns true if it is another one than before.
static bool take(struct go_tasks *tasks, bool found, struct go_program *program)
{
	const bool was_found = tasks->found;

	if (was_found && found && is_same_program(&tasks->program, program)) {
		tasks->program.n_others = program->n_others;
		tasks->program.other = program->other;
		go_program_deinit(program);
		note_program(tasks);
		return false;
	}
	go_program_deinit(&tasks->program);
	tasks->program = *program;
	tasks->found = found && !program->refused;
	if (!found)
		tasks->tries = MAX_TRIES + 1;
	note_program(tasks);
	note_walk(tasks);
	return was_found;
}

// Looks for Go at first, and when code has come or gone; and again, at growing distances, while the
// runtime has not begun, or has not been found.
static bool tasks_find(void *context, int tid, uint64_t tick, uint64_t n_rules, bool *ret_is_other)
{
	struct go_tasks *tasks = context;
	struct address_space *space = tasks->setup->space;
	const struct go_memory memory = memory_of(tasks, tid);
	const bool is_new = has_new_code(tasks, n_rules);
	struct go_program program = {0};

	*ret_is_other = false;
	tasks->n_rules = n_rules;
	if (is_new)
		tasks->tries = 0;
	if (!is_new && (tasks->found || tick < tasks->try_tick || tasks->tries > MAX_TRIES))
		return tasks->found;
	tasks->try_tick = tick + (UINT64_C(1) << tasks->tries++);
	tasks->generation = space->generation;
	tasks->n_files = go_program_count_files(space);
	const bool found = go_program_find(space, &memory, &program);
	*ret_is_other = take(tasks, found, &program);
	return tasks->found;
}

// --- What the runtime says

static bool tasks_list(void *context, int tid)
{
	struct go_tasks *tasks = context;
	struct run_tasks *figures = &tasks->setup->stats->tasks;
	const struct go_memory memory = memory_of(tasks, tid);

	if (!goroutine_list_read(&tasks->list, &tasks->program, &memory)) {
		if (figures->looks == 0)
			figures->refused = "its list of goroutines cannot be read";
		return false;
	}
	figures->refused = NULL;
	figures->left_out = tasks->list.n_left_out;
	return true;
}

static bool tasks_list_next(void *context, int tid, const struct task **ret, size_t *ret_n)
{
	struct go_tasks *tasks = context;
	const struct go_memory memory = memory_of(tasks, tid);
	const bool is_more = goroutine_list_next(&tasks->list, &tasks->program, &memory);

	*ret = tasks->list.items;
	*ret_n = tasks->list.count;
	return is_more;
}

static bool tasks_read(const void *context, int tid, uint64_t address, struct task *ret)
{
	const struct go_tasks *tasks = context;
	const struct go_memory memory = memory_of(tasks, tid);

	return goroutine_read(&tasks->program, &memory, address, ret);
}

// Reads now what does not change in a goroutine's life.
static bool tasks_of_snapshot(const void *context, int tid, const struct snapshot *snapshot,
                              struct task *ret)
{
	const struct go_thread *go = go_stacks_thread(snapshot);

	if (!go_thread_runs_goroutine(go) ||
	    !tasks_read(context, tid, go->goroutine.address, ret) || ret->id != go->goid)
		return false;
	ret->labels = go->labels; // those at the stop: it may have others by now
	return true;
}

static bool tasks_runner(const void *context, int tid, uint64_t m, uint64_t *ret_tid,
                         uint64_t *ret_g)
{
	const struct go_tasks *tasks = context;
	const struct go_memory memory = memory_of(tasks, tid);

	return goroutine_thread(&tasks->program, &memory, m, ret_tid, ret_g);
}

// One that is switched to without the scheduler, or was stopped in the middle of its work, may not:
// its structure may say the same while it is at another place.
static bool may_be_kept(const void *context, const struct task *task)
{
	const struct go_tasks *tasks = context;
	const char *reason = goroutine_reason(&tasks->program, task);

	return task->has_seq &&
	       (task->status == GOROUTINE_RUNNABLE ||
	        (task->status == GOROUTINE_WAITING && strcmp(reason, "coroutine") != 0 &&
	         strcmp(reason, "preempted") != 0));
}

static bool tasks_labels(const void *context, int tid, uint64_t labels, char **text)
{
	const struct go_tasks *tasks = context;
	const struct go_memory memory = memory_of(tasks, tid);

	return go_labels_read(&tasks->program, &memory, labels, text);
}

// --- Kinds

// True for the goroutines that the runtime itself calls its own (proc.go, isSystemGoroutine).
static bool is_runtimes(const char *name)
{
	static const char *const users[] = {"runtime.main", "runtime.corostart",
	                                    "runtime.handleAsyncEvent"};

	for (size_t i = 0; i < array_size(users); i++)
		if (strcmp(name, users[i]) == 0)
			return false;
	return text_begins_with(name, "runtime.");
}

// True for those that call finalizers and cleanups: they are the program's while they do.
static bool calls_back(const char *name)
{
	return strcmp(name, "runtime.runfinq") == 0 || strcmp(name, "runtime.runFinalizers") == 0 ||
	       strcmp(name, "runtime.runCleanups") == 0;
}

static bool is_programs(const void *context, const struct task *task)
{
	const struct go_tasks *tasks = context;

	if (task->status == GOROUTINE_IDLE)
		return false;
	if (task->status != GOROUTINE_WAITING)
		return true;
	const char *reason = goroutine_reason(&tasks->program, task);
	return strcmp(reason, "finalizer wait") != 0 && strcmp(reason, "cleanup wait") != 0;
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

static void find_creator(const struct go_tasks *tasks, struct task_kind *kind)
{
	// The main goroutine was not started by a goroutine.
	if (kind->creator_pc == 0 || strcmp(kind->name, "runtime.main") == 0)
		return;
	const struct code_address code =
	    address_space_resolve(tasks->setup->space, kind->creator_pc - 1);
	kind->has_creator = code.module->kind == MODULE_FILE;
	if (kind->has_creator)
		kind->creator = profile_intern_code(tasks->setup->profile, code.module->index,
		                                    code.address, LOCATION_CREATOR);
}

static void describe(const void *context, const struct task *task, struct task_kind *ret)
{
	const struct go_tasks *tasks = context;
	char *name = name_of(&tasks->program, task->start_pc);

	*ret = (struct task_kind){
	    .start_pc = task->start_pc,
	    .creator_pc = task->creator_pc,
	    .name = name,
	    .is_runtimes = is_runtimes(name),
	    .may_be_shown = calls_back(name),
	    .lacks_name = go_program_is_wrapper(&tasks->program, task->start_pc),
	};
	find_creator(tasks, ret);
}

static char *name_by_stack(const void *context, const uint32_t *location_ids, size_t n)
{
	enum { CALLED = 3 }; // from the root on: runtime.goexit, the wrapper, what it calls
	const struct go_tasks *tasks = context;
	const struct go_program *program = &tasks->program;

	if (n < CALLED)
		return NULL;
	const struct location *called = &tasks->setup->profile->locations[location_ids[n - CALLED]];
	if (called->module != program->module->index)
		return NULL;
	char *name = name_of(program, called->address + program->bias);
	if (name[0])
		return name;
	free(name);
	return NULL;
}

// --- Copies of those that are parked

static bool copies_add(void *context, const struct task *task, uint32_t id)
{
	struct go_tasks *tasks = context;

	return goroutine_copies_add(&tasks->copies, task, id);
}

static size_t copies_make(void *context, int tid)
{
	struct go_tasks *tasks = context;
	const struct go_memory memory = memory_of(tasks, tid);

	if (tasks->copies.count > 0)
		goroutine_copies_make(&tasks->copies, &tasks->program, &memory);
	return tasks->copies.count;
}

static struct task_copy *copies_item(void *context, size_t i)
{
	struct go_tasks *tasks = context;

	return &tasks->copies.items[i].copy;
}

static void copies_drop(void *context)
{
	struct go_tasks *tasks = context;

	goroutine_copies_clear(&tasks->copies);
}

static struct task_copy *copy_alone(void *context, int tid, const struct task *task)
{
	struct go_tasks *tasks = context;
	const struct go_memory memory = memory_of(tasks, tid);

	goroutine_copies_clear(&tasks->copy);
	goroutine_copies_add(&tasks->copy, task, 0);
	goroutine_copies_make(&tasks->copy, &tasks->program, &memory);
	return &tasks->copy.items[0].copy;
}

// The runtime walks past frames of C as well.
static bool pass_own_stack(struct task_copy *copy)
{
	struct goroutine_copied *copied = (struct goroutine_copied *)copy;

	if (copied->thread.m == 0)
		return false;
	copied->thread.m = 0;
	return true;
}

static void tasks_wait(const void *context, const struct task *task, const struct task_copy *copy,
                       struct task_wait *ret)
{
	const struct go_tasks *tasks = context;
	const struct go_wait *wait = &((const struct goroutine_copied *)copy)->wait;

	*ret = (struct task_wait){
	    .reason = goroutine_reason(&tasks->program, task),
	    .descriptor = wait->descriptor,
	};
	if (!wait->what)
		return;
	const int n =
	    snprintf(ret->object, sizeof(ret->object), "%s 0x%" PRIx64, wait->what, wait->address);
	if (wait->n_more)
		snprintf(ret->object + n, sizeof(ret->object) - (size_t)n, " +%zu", wait->n_more);
}

const struct language_tasks go_tasks = {
    .begin = tasks_begin,
    .end = tasks_end,
    .find = tasks_find,
    .has_new_code = has_new_code,
    .note_walk = note_walk,
    .list = tasks_list,
    .list_next = tasks_list_next,
    .read = tasks_read,
    .of_snapshot = tasks_of_snapshot,
    .runner = tasks_runner,
    .is_same = goroutine_is_as,
    .may_be_kept = may_be_kept,
    .describe = describe,
    .name_by_stack = name_by_stack,
    .is_programs = is_programs,
    .labels = tasks_labels,
    .add = copies_add,
    .copy = copies_make,
    .copied = copies_item,
    .drop = copies_drop,
    .copy_alone = copy_alone,
    .pass_own_stack = pass_own_stack,
    .wait = tasks_wait,
};

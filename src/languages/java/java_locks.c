// SPDX-License-Identifier: MIT
// What a sleeping thread of Java waits for, as jstack tells it: a monitor, whose owner HotSpot
// knows; or the object in java.lang.Thread.parkBlocker, set before the thread parked. That has an
// owner if it is an AbstractOwnableSynchronizer.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "java.h"
#include "java_name.h"
#include "memory.h"
#include "proc.h"
#include "runtimes.h"

static bool read_state(struct java *java, int tid, struct java_thread_state *ret)
{
	return java_layout_has_threads(&java->layout) &&
	       java_threads_read(&java->threads, &java->layout, &java->source.memory, tid, ret);
}

char *java_name_thread(void *context, int tid)
{
	struct java *java = context;
	const struct java_memory *memory = &java->source.memory;
	struct java_thread_state state;
	uint64_t object;

	if (!read_state(java, tid, &state) ||
	    !java_objects_begin(&java->objects, memory, state.object, &object))
		return NULL;
	char *name = java_objects_string(
	    &java->objects, memory,
	    java_objects_get(&java->objects, memory, object, java->objects.fields.thread_name));
	if (name && name[0] && java_objects_hold(&java->objects, memory))
		return name;
	free(name);
	return NULL;
}

// Returns "WHAT 0xADDRESS, held by "NAME" TID" as a new string; without what is not known.
static char *lock_text(struct java *java, const char *what, const char *class, uint64_t address,
                       int owner)
{
	char kernel_name[PROC_NAME_SIZE];
	_cleanup_free_ char *text =
	    memory_printf("%s%s%s 0x%" PRIx64, what, class ? " " : "", class ?: "", address);

	if (owner == 0)
		return take_pointer(text);
	_cleanup_free_ char *name = java_name_thread(java, owner);
	if (!name && !proc_read_name(java->setup->space->pid, owner, kernel_name))
		return take_pointer(text);
	return memory_printf("%s, held by \"%s\" %d", text, name ?: kernel_name, owner);
}

// Returns the class of the monitor's object, as a new string; NULL: it cannot be read.
static char *monitor_class(struct java *java, const struct java_thread_state *state,
                           uint64_t monitor)
{
	const struct java_memory *memory = &java->source.memory;
	struct java_objects *objects = &java->objects;
	uint64_t thread;

	if (!java_objects_begin(objects, memory, state->object, &thread))
		return NULL;
	const uint64_t object = java_objects_of_handle(
	    objects, memory,
	    java_read_word(memory, monitor + (uint64_t)java->layout.monitor_object));
	char *name =
	    java_objects_class_name(objects, memory, java_objects_class(objects, memory, object));
	if (name && java_objects_hold(objects, memory))
		return name;
	free(name);
	return NULL;
}

// A thread that wants to enter a monitor.
static char *name_pending(struct java *java, const struct java_thread_state *state)
{
	const int owner =
	    java_threads_owner(&java->threads, &java->layout, &java->source.memory, state->pending);
	_cleanup_free_ char *class = monitor_class(java, state, state->pending);

	return lock_text(java, "monitor", class, state->pending, owner);
}

// A thread in Object.wait.
static char *name_waiting(struct java *java, const struct java_thread_state *state)
{
	_cleanup_free_ char *class = monitor_class(java, state, state->waiting);

	return class ? memory_printf("notify of %s", class) : NULL;
}

// What a thread is parked for.
struct blocker {
	uint64_t address;
	char *class; // NULL: not known
	int owner;   // 0: none, or not known
};

static int find_owner(struct java *java, uint64_t blocker)
{
	const struct java_memory *memory = &java->source.memory;
	const struct java_fields *fields = &java->objects.fields;
	const uint64_t thread = java_objects_get(&java->objects, memory, blocker, fields->owner);

	if (thread == 0 || fields->thread_native < 0)
		return 0;
	return java_threads_tid(&java->threads, &java->layout, memory,
	                        java_read_word(memory, thread + (uint64_t)fields->thread_native));
}

static bool read_blocker(struct java *java, const struct java_thread_state *state,
                         struct blocker *ret)
{
	const struct java_memory *memory = &java->source.memory;
	struct java_objects *objects = &java->objects;
	uint64_t thread;

	*ret = (struct blocker){0};
	if (!java_objects_begin(objects, memory, state->object, &thread))
		return false;
	ret->address = java_objects_get(objects, memory, thread, objects->fields.thread_blocker);
	const uint64_t class = java_objects_class(objects, memory, ret->address);
	if (class && java_objects_is_synchronizer(objects, memory, class))
		ret->owner = find_owner(java, ret->address);
	ret->class = java_objects_class_name(objects, memory, class);
	return ret->class && java_objects_hold(objects, memory);
}

// A thread that is parked. The address is left out if it is not a lock.
static char *name_parked(struct java *java, const struct java_thread_state *state)
{
	struct blocker blocker;
	char *text = NULL;

	if (read_blocker(java, state, &blocker)) {
		_cleanup_free_ char *name = java_name_lock(blocker.class);
		text = blocker.owner ? lock_text(java, "lock", name, blocker.address, blocker.owner)
		                     : memory_printf("parked on %s", name);
	}
	free(blocker.class);
	return text;
}

static char *name_wait(struct java *java, int tid)
{
	struct java_thread_state state;

	if (!read_state(java, tid, &state))
		return NULL;
	if (state.pending)
		return name_pending(java, &state);
	return state.waiting ? name_waiting(java, &state) : name_parked(java, &state);
}

char *java_name_futex(void *context, int tid, uint64_t futex)
{
	struct java *java = context;
	struct java_memory *memory = &java->source.memory;

	(void)futex; // HotSpot's own, of the thread
	java_replay_begin(&java->replay, memory->resident, memory->tid, tid);
	memory->replay = &java->replay;
	char *name = name_wait(java, tid);
	memory->replay = NULL;
	java_replay_end(&java->replay);
	return name;
}

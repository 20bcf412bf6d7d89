// SPDX-License-Identifier: MIT
// What a thread is called by threading.Thread. Its object is the first argument of the function
// that each such thread begins with; the name is an attribute, whose place depends on the version
// (Objects/dictobject.c, Include/internal/pycore_dict.h).
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "frame_names.h"
#include "memory.h"
#include "proc.h"
#include "python.h"
#include "resident.h"
#include "runtimes.h"
#include "text.h"

enum {
	MAX_WALKED = 16384, // frames, up to the first function
	MAX_KEYS = 64,      // attributes of a thread's object
	NAME_OBJECT_BYTES = 256,
	TAG_BITS = 3,
	// Of types and dictionaries, in all of 3.6 to 3.13; a free-threaded build has further
	// fields in the head of every object.
	HEAD_TYPE = 8, // where the head of the others has its type
	TYPE_BASICSIZE = 32,
	TYPE_FLAGS = 168,
	TYPE_DICTOFFSET = 288,
	DICT_KEYS = 32,
	DICT_VALUES = 40,
	INLINE_VALUES = 1 << 2, // a flag, from 3.13 on
	MANAGED_DICT = 24,      // before the object, from 3.11 on; and the values of 3.11
	MANAGED_VALUES = 32,
	MANAGED_DICT_FREE_THREADED = 8,
	SPLIT_KEYS = 1, // what is not general has entries without hashes
};

// The keys of a dictionary, and where their values are.
struct attributes {
	uint64_t keys;
	uint64_t values; // 0: with the keys
};

// Where a field is that lies behind the head of its object.
static uint64_t behind_head(const struct python *python, uint64_t object, uint32_t offset)
{
	return object + offset + (python->layout.object_type - HEAD_TYPE);
}

// The attributes that an object keeps in a dictionary of its own.
static bool read_dict(const struct python *python, int tid, uint64_t dict, struct attributes *ret)
{
	return dict &&
	       python_read_word(python, tid, behind_head(python, dict, DICT_KEYS), &ret->keys) &&
	       python_read_word(python, tid, behind_head(python, dict, DICT_VALUES), &ret->values);
}

static uint32_t values_begin(const struct python *python)
{
	return python->layout.minor >= 13 ? 8 : 0; // after sizes of four bytes
}

// The values themselves, whose keys its type has.
static bool read_values(const struct python *python, int tid, uint64_t object, uint64_t type,
                        struct attributes *ret)
{
	uint64_t flags, size;

	if (!python_read_word(python, tid, behind_head(python, type, python->layout.type_keys),
	                      &ret->keys))
		return false;
	if (python->layout.minor == 11)
		return python_read_word(python, tid, object - MANAGED_VALUES, &ret->values) &&
		       ret->values;
	if (python->layout.minor == 12) // tagged by its lowest bit
		return python_read_word(python, tid, object - MANAGED_DICT, &ret->values) &&
		       ret->values++ & 1;
	ret->values = object;
	if (!python_read_word(python, tid, behind_head(python, type, TYPE_FLAGS), &flags) ||
	    !(flags & INLINE_VALUES) ||
	    !python_read_word(python, tid, behind_head(python, type, TYPE_BASICSIZE), &size))
		return false;
	ret->values += size;
	return true;
}

static bool find_attributes(const struct python *python, int tid, uint64_t object,
                            struct attributes *ret)
{
	const uint32_t managed =
	    python->layout.free_threaded ? MANAGED_DICT_FREE_THREADED : MANAGED_DICT;
	uint64_t type, offset, dict;

	if (!python_read_word(python, tid, object + python->layout.object_type, &type))
		return false;
	if (python->layout.minor <= 10)
		return python_read_word(python, tid, type + TYPE_DICTOFFSET, &offset) &&
		       python_read_word(python, tid, object + offset, &dict) &&
		       read_dict(python, tid, dict, ret);
	if (!python_read_word(python, tid, object - managed, &dict))
		return false;
	if (dict && !(dict & 1))
		return read_dict(python, tid, dict, ret);
	return read_values(python, tid, object, type, ret);
}

struct entries {
	uint64_t first;
	uint64_t n;
	uint32_t size, key_at;
};

static bool find_entries(const struct python *python, int tid, uint64_t keys, struct entries *ret)
{
	uint64_t head[5];

	if (!resident_read(python->setup->resident, tid, keys, head, sizeof(head)))
		return false;
	*ret = (struct entries){.size = 24, .key_at = 8};
	if (python->layout.minor <= 10) { // dk_size; dk_nentries
		const uint64_t size = head[1];
		const uint32_t index = size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;
		ret->first = keys + 40 + size * index;
		ret->n = head[4];
	} else { // dk_log2_index_bytes, dk_kind; dk_nentries
		if (head[1] >> 16 & 0xff)
			*ret = (struct entries){.size = 16, .key_at = 0};
		ret->first = keys + 32 + (1ull << (head[1] >> 8 & 31));
		ret->n = head[3];
	}
	return ret->n <= MAX_KEYS;
}

static char *read_text(const struct python *python, int tid, uint64_t string)
{
	uint8_t object[NAME_OBJECT_BYTES] = {0};

	// It may lie at the end of what can be read.
	for (size_t size = sizeof(object); size >= 64; size /= 2)
		if (resident_read(python->setup->resident, tid, string, object, size))
			return python_codes_text(python, object, size);
	return NULL;
}

// The address of the value's pointer; 0: there is no such attribute.
static uint64_t find_attribute(const struct python *python, int tid, uint64_t object,
                               const char *name)
{
	struct attributes found;
	struct entries entries;

	if (!find_attributes(python, tid, object, &found) ||
	    !find_entries(python, tid, found.keys, &entries))
		return 0;
	for (uint64_t i = 0; i < entries.n; i++) {
		const uint64_t at = entries.first + i * entries.size + entries.key_at;
		uint64_t key;
		if (!python_read_word(python, tid, at, &key) || !key)
			continue;
		_cleanup_free_ char *text = read_text(python, tid, key);
		if (!text || strcmp(text, name) != 0)
			continue;
		return found.values ? found.values + values_begin(python) + i * sizeof(key)
		                    : at + sizeof(key);
	}
	return 0;
}

// True if the frame is of the function that each of threading's threads begins with.
static bool is_bootstrap(struct python *python, int tid, uint64_t frame)
{
	struct python_code_seen seen = {0};
	uint32_t line;

	if (!python_read_word(python, tid, frame + python->layout.frame_code, &seen.address))
		return false;
	seen.address &= ~(uint64_t)TAG_BITS;
	python_codes_look_at_one(python, tid, &seen);
	const struct python_code *code = python_codes_get(python, tid, &seen);
	const struct frame_function *function =
	    code ? frame_names_find(python->codes.names, frame_names_address(code->function, 0),
	                            &line)
	         : NULL;
	if (!function || !function->name)
		return false;
	return strcmp(function->name, "Thread._bootstrap") == 0 ||
	       (python->layout.minor <= 10 && strcmp(function->name, "_bootstrap") == 0);
}

// The outermost frame of a thread; a shim does not count.
static uint64_t find_outermost(const struct python *python, int tid, uint64_t state)
{
	const struct python_layout *layout = &python->layout;
	uint64_t frame, outermost = 0;
	uint8_t owner = 0;

	if (layout->thread_cframe && !layout->thread_frame) {
		if (!python_read_word(python, tid, state + layout->thread_cframe, &frame) ||
		    !python_read_word(python, tid, frame + layout->cframe_frame, &frame))
			return 0;
	} else if (!python_read_word(python, tid, state + layout->thread_frame, &frame)) {
		return 0;
	}
	for (size_t i = 0; frame && i < MAX_WALKED; i++) {
		if (layout->frame_owner &&
		    !resident_read(python->setup->resident, tid, frame + layout->frame_owner,
		                   &owner, sizeof(owner)))
			return 0;
		outermost = owner >= layout->shim_owner ? outermost : frame;
		if (!python_read_word(python, tid, frame + layout->frame_previous, &frame))
			return 0;
	}
	return frame ? 0 : outermost;
}

// From 3.11 on frames lie on the data stack, whose first word is kept so that its first frame does
// not take the oldest chunk with it (push_chunk in Python/pystate.c).
static uint64_t find_first_frame(const struct python *python, int tid, struct python_thread *thread)
{
	if (!python->layout.thread_chunk)
		return find_outermost(python, tid, thread->state);
	if (!thread->root)
		thread->root = python_threads_find_root(python, tid, thread->state);
	return thread->root ? thread->root + PYTHON_FIRST_FRAME : 0;
}

static char *name_of(struct python *python, int tid, struct python_thread *thread)
{
	uint64_t object, string, again;

	if (!thread->outermost)
		thread->outermost = find_first_frame(python, tid, thread);
	const uint64_t frame = thread->outermost;
	if (!frame || !is_bootstrap(python, tid, frame) ||
	    !python_read_word(python, tid, frame + python->layout.frame_locals, &object)) {
		thread->outermost = 0; // it may have been read in the midst of a change
		return NULL;
	}
	const uint64_t at = find_attribute(python, tid, object, "_name");
	if (!at || !python_read_word(python, tid, at, &string))
		return NULL;
	char *name = read_text(python, tid, string);
	if (name && (!python_read_word(python, tid, at, &again) || again != string)) {
		free(name);
		return NULL;
	}
	return name;
}

// True if nobody chose the name: threading counts such threads.
static bool is_counted_name(const char *name)
{
	static const char prefix[] = "Thread-";

	return text_begins_with(name, prefix) && isdigit((unsigned char)name[sizeof(prefix) - 1]);
}

// True if the kernel knows the thread by another name than the process's, which threads begin with.
static bool has_kernel_name(const struct python *python, int tid)
{
	const int pid = python->setup->space->pid;
	char own[PROC_NAME_SIZE], process[PROC_NAME_SIZE];

	return proc_read_name(pid, tid, own) && proc_read_name(pid, pid, process) &&
	       strcmp(own, process) != 0;
}

char *python_name_thread(void *context, int tid)
{
	struct python *python = context;
	size_t n;
	struct python_thread *states =
	    (struct python_thread *)python_threads_find(python->threads, tid, &n);
	char *name = NULL;

	if (!python->layout.frame_locals)
		return NULL;
	for (size_t i = 0; i < n && !name; i++)
		name = name_of(python, tid, &states[i]);
	if (name && is_counted_name(name) && has_kernel_name(python, tid)) {
		free(name);
		return NULL;
	}
	return name;
}

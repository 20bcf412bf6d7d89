// SPDX-License-Identifier: MIT
#include "python_layout.h"

#include <string.h>

#include "memory.h"

enum {
	MAX_OFFSET = 1024,           // in an object
	MAX_INTERP_OFFSET = 1 << 20, // in an interpreter's state
	MAX_GIL_OFFSET = 64,
	NO_SHIMS = 256, // beyond any owner
	CSTACK = 3,     // FRAME_OWNED_BY_CSTACK, or ..._BY_INTERPRETER (3.14)
	// Words of _Py_DebugOffsets: the interpreter's id, and from those of its GIL on.
	ID_WORD = 7,
	LOCKED = 2,
	HOLDER = 3,
	// From 3.14 on the kernel has the names of threads.
	LOCALS_3_13 = 72,
	TYPE_KEYS_3_13 = 880,
	// The frame's object is not told of. It is the same from 3.12 to 3.14, and with a GIL.
	FRAME_OBJECT = 48,
	OBJECT_LINE = 40,
	LAST_FRAME_OBJECT = 14,
};

#define OBJECTS                                                                                    \
	.object_type = 8, .bytes_size = 16, .bytes_data = 32, .string_state = 32,                  \
	.string_length = 16
#define OLD_STRINGS .string_ascii = 48, .string_compact = 72
#define GIL .gil_holder = 8, .gil_locked = 16
#define THREADS .thread_next = 8, .thread_interp = 16
// Up to 3.10 a frame is an object.
#define FRAMES .frame_previous = 24, .frame_code = 32, .interp_threads = 8, .thread_frame = 24
#define FRAMES_3_7                                                                                 \
	FRAMES, .thread_id = 176, .thread_bytes = 184, .frame_bytes = 112, .code_bytes = 144,      \
	        .shim_owner = NO_SHIMS
#define CODE_3_6                                                                                   \
	.code_file = 96, .code_name = 104, .code_lines = 112, .code_first_line = 36,               \
	.code_consts = 48
#define CODE_3_8                                                                                   \
	.code_file = 104, .code_name = 112, .code_lines = 120, .code_first_line = 40,              \
	.code_consts = 56

static const struct python_layout layouts[] = {
    {.minor = 6,
     OBJECTS,
     OLD_STRINGS,
     THREADS,
     FRAMES,
     .thread_id = 152,
     .thread_bytes = 160,
     .frame_instr = 120,
     .frame_locals = 376,
     .frame_bytes = 128,
     CODE_3_6,
     .code_bytes = 144,
     .shim_owner = NO_SHIMS},
    {.minor = 7,
     .runtime_gil = 1264,
     .runtime_current = 1480,
     GIL,
     .interp_id = 16,
     OBJECTS,
     OLD_STRINGS,
     THREADS,
     FRAMES_3_7,
     .interpreters = 24,
     .frame_instr = 104,
     .frame_locals = 360,
     CODE_3_6},
    {.minor = 8,
     .runtime_gil = 1152,
     .runtime_current = 1368,
     GIL,
     .interp_id = 16,
     OBJECTS,
     OLD_STRINGS,
     THREADS,
     FRAMES_3_7,
     .interpreters = 32,
     .frame_instr = 104,
     .frame_locals = 360,
     CODE_3_8},
    {.minor = 9,
     .runtime_gil = 352,
     .runtime_current = 568,
     GIL,
     .interp_id = 24,
     OBJECTS,
     OLD_STRINGS,
     THREADS,
     FRAMES_3_7,
     .interpreters = 32,
     .frame_instr = 104,
     .frame_generator = 96,
     .frame_locals = 360,
     CODE_3_8},
    {.minor = 10,
     .runtime_gil = 352,
     .runtime_current = 568,
     GIL,
     .interp_id = 24,
     OBJECTS,
     OLD_STRINGS,
     THREADS,
     FRAMES_3_7,
     .interpreters = 32,
     .thread_cframe = 48,
     .thread_root_cframe = 264,
     .cframe_previous = 8,
     .frame_instr = 96,
     .frame_generator = 88,
     .frame_locals = 352,
     CODE_3_8},
    {.minor = 11,
     .runtime_gil = 360,
     .runtime_current = 576,
     GIL,
     .interp_id = 48,
     .interp_collecting = 848,
     OBJECTS,
     OLD_STRINGS,
     THREADS,
     .interpreters = 40,
     .interp_threads = 16,
     .thread_cframe = 56,
     .thread_root_cframe = 336,
     .thread_id = 152,
     .thread_native_id = 160,
     .thread_chunk = 296,
     .thread_bytes = 320,
     .cframe_frame = 8,
     .cframe_previous = 16,
     .frame_previous = 48,
     .frame_code = 32,
     .frame_instr = 56,
     .frame_owner = 69,
     .frame_entry = 68,
     .frame_object = 40,
     .object_line = OBJECT_LINE,
     .frame_locals = 72,
     .type_keys = 872,
     .frame_bytes = 72,
     .code_file = 112,
     .code_name = 120,
     .code_qualname = 128,
     .code_lines = 136,
     .code_first_line = 72,
     .code_start = 184,
     .code_traceable = 168,
     .code_consts = 24,
     .code_bytes = 184,
     .shim_owner = NO_SHIMS},
    {.minor = 12,
     .interp_gil = 384,
     GIL,
     .interp_id = 8,
     .interp_collecting = 312,
     OBJECTS,
     THREADS,
     .string_ascii = 40,
     .string_compact = 56,
     .interpreters = 40,
     .interp_threads = 72,
     .thread_cframe = 56,
     .thread_root_cframe = 272,
     .thread_id = 136,
     .thread_native_id = 144,
     .thread_chunk = 232,
     .thread_bytes = 256,
     .cframe_previous = 8,
     .frame_previous = 8,
     .frame_instr = 56,
     .frame_owner = 70,
     .frame_object = FRAME_OBJECT,
     .object_line = OBJECT_LINE,
     .frame_locals = 72,
     .type_keys = 880,
     .frame_bytes = 72,
     .code_file = 112,
     .code_name = 120,
     .code_qualname = 128,
     .code_lines = 136,
     .code_first_line = 68,
     .code_start = 192,
     .code_traceable = 176,
     .code_version = 92,
     .code_consts = 24,
     .code_bytes = 192,
     .shim_owner = CSTACK},
};

// Which words of _Py_DebugOffsets are what.
struct debug_words {
	int minor;
	uint8_t interpreters, interp_next, interp_threads, interp_gil, interp_gc;
	uint8_t gil; // in the interpreter; further on: locked, holder
	uint8_t gc_collecting;
	uint8_t thread_next, thread_interp, thread_frame, thread_id, thread_native_id, thread_chunk;
	uint8_t frame_previous, frame_code, frame_instr, frame_owner, frame_tlbc;
	uint8_t code_file; // and its name, qualified name, line table and first line after it
	uint8_t code_start, code_tlbc;
	uint8_t object_type, bytes_size, string_state; // each with those that follow
};

static const struct debug_words debug_words[] = {
    {13, 5, 8, 9, 14, 10, 15, 72, 21, 22, 23, 24, 25, 26, 29, 30, 31, 33, 0, 35, 43, 0, 45, 65, 68},
    {14, 5,  8,  9,  15, 11, 16, 82, 24, 25, 26, 27, 28,
     29, 32, 33, 34, 36, 38, 40, 48, 49, 51, 75, 78},
    {15, 5,  8,  9,  15, 11, 16, 95, 24, 25, 26, 30, 31,
     32, 40, 41, 42, 44, 46, 48, 56, 57, 59, 87, 90},
};

const struct python_layout *python_layout_of(int minor)
{
	for (size_t i = 0; i < array_size(layouts); i++)
		if (layouts[i].minor == minor)
			return &layouts[i];
	return NULL;
}

static uint64_t word(const uint8_t *offsets, size_t i)
{
	uint64_t value;

	memcpy(&value, offsets + i * sizeof(value), sizeof(value));
	return value;
}

// False: an offset is larger than its object can be.
static bool is_sane(const uint8_t *offsets, const struct debug_words *words)
{
	const uint8_t large[] = {words->interpreters, words->interp_next,  words->interp_threads,
	                         words->interp_gil,   words->interp_gc,    words->gil,
	                         words->gil + LOCKED, words->gil + HOLDER, ID_WORD};
	const uint8_t small[] = {
	    words->thread_next,    words->thread_interp,    words->thread_frame,
	    words->thread_id,      words->thread_native_id, words->thread_chunk,
	    words->frame_previous, words->frame_code,       words->frame_instr,
	    words->frame_owner,    words->frame_tlbc,       words->code_file,
	    words->code_file + 1,  words->code_file + 2,    words->code_file + 3,
	    words->code_file + 4,  words->code_start,       words->code_tlbc,
	    words->object_type,    words->bytes_size,       words->bytes_size + 1,
	    words->string_state,   words->string_state + 1, words->string_state + 2,
	    words->gc_collecting};

	for (size_t i = 0; i < array_size(large); i++)
		if (large[i] && word(offsets, large[i]) > MAX_INTERP_OFFSET)
			return false;
	for (size_t i = 0; i < array_size(small); i++)
		if (small[i] && word(offsets, small[i]) > MAX_OFFSET)
			return false;
	return true;
}

#define OFFSET(field) (uint32_t) word(offsets, words->field)

static void fill_interpreter(const uint8_t *offsets, const struct debug_words *words,
                             struct python_layout *ret)
{
	ret->interpreters = OFFSET(interpreters);
	ret->interp_next = OFFSET(interp_next);
	ret->interp_threads = OFFSET(interp_threads);
	ret->interp_gil = OFFSET(interp_gil);
	ret->interp_id = (uint32_t)word(offsets, ID_WORD);
	ret->interp_collecting = OFFSET(interp_gc) + OFFSET(gc_collecting);
	ret->gil_locked = (uint32_t)(word(offsets, words->gil + LOCKED) - OFFSET(gil));
	ret->gil_holder = (uint32_t)(word(offsets, words->gil + HOLDER) - OFFSET(gil));
}

static void fill_thread(const uint8_t *offsets, const struct debug_words *words,
                        struct python_layout *ret)
{
	ret->thread_next = OFFSET(thread_next);
	ret->thread_interp = OFFSET(thread_interp);
	ret->thread_frame = OFFSET(thread_frame);
	ret->thread_id = OFFSET(thread_id);
	ret->thread_native_id = OFFSET(thread_native_id);
	ret->thread_chunk = OFFSET(thread_chunk);
	ret->thread_bytes = ret->thread_chunk + 16;
}

static void fill_frame(const uint8_t *offsets, const struct debug_words *words,
                       struct python_layout *ret)
{
	ret->frame_previous = OFFSET(frame_previous);
	ret->frame_code = OFFSET(frame_code);
	ret->frame_instr = OFFSET(frame_instr);
	ret->frame_owner = OFFSET(frame_owner);
	ret->shim_owner = CSTACK;
	if (!ret->free_threaded && ret->minor <= LAST_FRAME_OBJECT &&
	    ret->frame_instr == FRAME_OBJECT + 8) {
		ret->frame_object = FRAME_OBJECT;
		ret->object_line = OBJECT_LINE;
	}
	if (ret->free_threaded && words->code_tlbc)
		ret->frame_tlbc = OFFSET(frame_tlbc);
	ret->frame_bytes =
	    (ret->frame_tlbc > ret->frame_owner ? ret->frame_tlbc : ret->frame_owner) + 8;
}

static void fill_code(const uint8_t *offsets, const struct debug_words *words,
                      struct python_layout *ret)
{
	ret->code_file = OFFSET(code_file);
	ret->code_name = OFFSET(code_file + 1);
	ret->code_qualname = OFFSET(code_file + 2);
	ret->code_lines = OFFSET(code_file + 3);
	ret->code_first_line = OFFSET(code_file + 4);
	ret->code_start = OFFSET(code_start);
	if (ret->free_threaded && words->code_tlbc)
		ret->code_tlbc = OFFSET(code_tlbc);
	// co_version is the sixth number after co_firstlineno; _co_firsttraceable stands two words
	// before the instructions, or the table of their copies.
	ret->code_version = ret->code_first_line + 24;
	ret->code_traceable = (ret->code_tlbc ? ret->code_tlbc : ret->code_start) - 16;
	ret->code_bytes = ret->code_start;
}

static void fill_objects(const uint8_t *offsets, const struct debug_words *words,
                         struct python_layout *ret)
{
	ret->object_type = OFFSET(object_type);
	ret->bytes_size = OFFSET(bytes_size);
	ret->bytes_data = OFFSET(bytes_size + 1);
	ret->string_state = OFFSET(string_state);
	ret->string_length = OFFSET(string_state + 1);
	ret->string_ascii = OFFSET(string_state + 2);
	ret->string_compact = ret->string_ascii + 16; // utf8_length and utf8 stand before it
}

#undef OFFSET

static void fill(const uint8_t *offsets, const struct debug_words *words, struct python_layout *ret)
{
	*ret = (struct python_layout){
	    .minor = words->minor,
	    .free_threaded = word(offsets, 2) != 0,
	};
	if (ret->minor == 13) {
		ret->frame_locals = LOCALS_3_13;
		ret->type_keys = TYPE_KEYS_3_13;
	}
	fill_interpreter(offsets, words, ret);
	fill_thread(offsets, words, ret);
	fill_frame(offsets, words, ret);
	fill_code(offsets, words, ret);
	fill_objects(offsets, words, ret);
}

static bool is_within_bounds(const struct python_layout *layout)
{
	const uint32_t fields[] = {
	    layout->code_file,    layout->code_name,      layout->code_qualname, layout->code_lines,
	    layout->code_version, layout->code_traceable, layout->object_type,   layout->code_tlbc};
	const uint32_t frame_fields[] = {layout->frame_previous, layout->frame_code,
	                                 layout->frame_instr};
	const uint32_t thread_fields[] = {layout->thread_next, layout->thread_interp,
	                                  layout->thread_frame, layout->thread_id,
	                                  layout->thread_native_id};

	if (layout->thread_bytes > PYTHON_MAX_THREAD_BYTES ||
	    layout->frame_bytes > PYTHON_MAX_FRAME_BYTES ||
	    layout->code_bytes > PYTHON_MAX_CODE_BYTES)
		return false;
	for (size_t i = 0; i < array_size(fields); i++)
		if (fields[i] + 8 > layout->code_bytes)
			return false;
	for (size_t i = 0; i < array_size(frame_fields); i++)
		if (frame_fields[i] + 8 > layout->frame_bytes)
			return false;
	for (size_t i = 0; i < array_size(thread_fields); i++)
		if (thread_fields[i] + 8 > layout->thread_bytes)
			return false;
	if (layout->gil_locked > MAX_GIL_OFFSET || layout->gil_holder > MAX_GIL_OFFSET)
		return false;
	return layout->string_compact <= 128 && layout->bytes_data <= 128 &&
	       layout->string_state <= 120 && layout->string_length <= 120 &&
	       layout->bytes_size <= 120;
}

// What memory would not show to be wrong: neighbours that a version which is not known must have as
// the newest one has them.
static bool has_same_neighbours(const uint8_t *offsets, const struct debug_words *words)
{
	const size_t code_bytes = words->code_file - 1, argcount = words->code_file + 5;
	const struct {
		size_t first, second;
		uint64_t distance;
	} pairs[] = {
	    {words->thread_next - 1, words->thread_next, 8}, // the first is its prev
	    {words->thread_next, words->thread_interp, 8},
	    {words->code_file, words->code_file + 1, 8},
	    {words->code_file + 1, words->code_file + 2, 8},
	    {words->code_file + 2, words->code_file + 3, 8},
	    {argcount, words->code_file + 4, 16},
	    {words->code_start, code_bytes, 8},
	};

	for (size_t i = 0; i < array_size(pairs); i++)
		if (word(offsets, pairs[i].second) - word(offsets, pairs[i].first) !=
		    pairs[i].distance)
			return false;
	return true;
}

// Those of the version, or of the newest one that is known; NULL: it is too old.
static const struct debug_words *words_of(int minor)
{
	const struct debug_words *newest = &debug_words[array_size(debug_words) - 1];

	if (minor > newest->minor)
		return newest;
	for (size_t i = 0; i < array_size(debug_words); i++)
		if (debug_words[i].minor == minor)
			return &debug_words[i];
	return NULL;
}

bool python_layout_read(const uint8_t offsets[PYTHON_OFFSETS_BYTES], struct python_layout *ret,
                        int *ret_minor)
{
	*ret_minor = -1;
	if (memcmp(offsets, "xdebugpy", PYTHON_COOKIE_BYTES) != 0)
		return false;
	*ret_minor = (int)(word(offsets, 1) >> 16 & 0xff); // PY_VERSION_HEX
	const struct debug_words *words = words_of(*ret_minor);
	if (!words || !is_sane(offsets, words))
		return false;
	fill(offsets, words, ret);
	ret->is_guess = words->minor != *ret_minor;
	if (ret->is_guess)
		ret->code_version = 0; // nothing tells whether it is there
	return is_within_bounds(ret) && (!ret->is_guess || has_same_neighbours(offsets, words));
}

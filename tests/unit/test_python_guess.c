// SPDX-License-Identifier: MIT
// python_guess: an interpreter made by hand in this program's own memory, of a version that is not
// known. It tells its offsets in the newest known order, or in one that has got or lost a word.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "address_space.h"
#include "memory.h"
#include "python.h"
#include "python_guess.h"
#include "resident.h"
#include "runtimes.h"
#include "unit.h"

enum {
	WORD = 8,
	N_WORDS = PYTHON_OFFSETS_BYTES / WORD,
	VERSION_WORD = 1,
	MINOR = 99,
	N_STATES = 2,
	N_FRAMES = 3,
	CHUNK_BYTES = 16384,
	FIRST_FRAME = 32, // in the chunk
	FRAME_BYTES = 128,
	OBJECT_BYTES = 512,
	N_INSTRUCTIONS = 20,
	// Where fields are in their structures.
	INTERPRETERS = 16,
	ID = 16,
	NEXT_INTERP = 24,
	THREADS = 40,
	GC = 56,
	GIL = 64,
	OWN_GIL = 128,
	LOCKED = 16, // in the GIL
	HOLDER = 8,
	COLLECTING = 24, // in the collector
	PREVIOUS_STATE = 8,
	NEXT_STATE = 16,
	STATE_INTERP = 24,
	CURRENT_FRAME = 72,
	THREAD_ID = 152,
	NATIVE_ID = 160,
	CHUNK = 232,
	PREVIOUS_FRAME = 16,
	CODE = 8,
	INSTRUCTION = 56,
	OWNER = 74,
	ARGCOUNT = 52,
	FIRST_LINE = 68,
	FILE_NAME = 112, // and the name, the qualified one and the table of lines
	TRACEABLE = 184,
	START = 200,
	TYPE = 8,
	BYTES_SIZE = 16,
	BYTES_DATA = 32,
	STRING_STATE = 32,
	STRING_LENGTH = 16,
	STRING_TEXT = 40,
};

// _Py_DebugOffsets in 3.15 (Include/internal/pycore_debug_offsets.h): the words that are read.
static const struct {
	uint8_t word;
	uint16_t offset;
} told[] = {
    {5, INTERPRETERS},
    {7, ID},
    {8, NEXT_INTERP},
    {9, THREADS},
    {11, GC},
    {15, GIL},
    {16, OWN_GIL},
    {18, OWN_GIL + LOCKED},
    {19, OWN_GIL + HOLDER},
    {23, PREVIOUS_STATE},
    {24, NEXT_STATE},
    {25, STATE_INTERP},
    {26, CURRENT_FRAME},
    {30, THREAD_ID},
    {31, NATIVE_ID},
    {32, CHUNK},
    {40, PREVIOUS_FRAME},
    {41, CODE},
    {42, INSTRUCTION},
    {44, OWNER},
    {47, START + WORD}, // the size of a code object
    {48, FILE_NAME},
    {49, FILE_NAME + WORD},
    {50, FILE_NAME + 2 * WORD},
    {51, FILE_NAME + 3 * WORD},
    {52, FIRST_LINE},
    {53, ARGCOUNT},
    {56, START},
    {59, TYPE},
    {87, BYTES_SIZE},
    {88, BYTES_DATA},
    {90, STRING_STATE},
    {91, STRING_LENGTH},
    {92, STRING_TEXT},
    {95, COLLECTING},
};

static struct resident resident;
static struct address_space space;
static const struct runtimes_setup setup = {.space = &space, .resident = &resident};
static struct python python;

static uint64_t runtime[8], interp[64], gil[8], states[N_STATES][256];
static uint64_t chunks[N_STATES][CHUNK_BYTES / WORD];
static uint64_t code[OBJECT_BYTES / WORD], lines[16], file[16], name[16], qualname[16];
static uint64_t code_type, string_type, bytes_type;

static uint64_t at(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static void put(uint64_t *structure, uint32_t offset, uint64_t value, size_t size)
{
	memcpy((uint8_t *)structure + offset, &value, size);
}

static void make_string(uint64_t *string, const char *text)
{
	put(string, TYPE, at(&string_type), WORD);
	put(string, STRING_LENGTH, strlen(text), WORD);
	put(string, STRING_STATE, 1u << 2 | 1u << 5 | 1u << 6, 4);
	strcpy((char *)string + STRING_TEXT, text);
}

static void make_code(void)
{
	make_string(file, "/srv/program.py");
	make_string(name, "work");
	make_string(qualname, "Thing.work");
	put(lines, TYPE, at(&bytes_type), WORD);
	put(lines, BYTES_SIZE, 4, WORD);
	put(lines, BYTES_DATA, 0x80808080, 4);
	put(code, TYPE, at(&code_type), WORD);
	put(code, BYTES_SIZE, N_INSTRUCTIONS, WORD);
	put(code, ARGCOUNT, 1, 4);
	put(code, FIRST_LINE, 7, 4);
	put(code, FILE_NAME, at(file), WORD);
	put(code, FILE_NAME + WORD, at(name), WORD);
	put(code, FILE_NAME + 2 * WORD, at(qualname), WORD);
	put(code, FILE_NAME + 3 * WORD, at(lines), WORD);
	put(code, TRACEABLE, 2, 4);
}

static void make_frames(uint64_t *chunk)
{
	for (uint32_t i = 0; i < N_FRAMES; i++) {
		const uint32_t frame = FIRST_FRAME + i * FRAME_BYTES;
		put(chunk, frame + CODE, at(code) | 1, WORD);
		put(chunk, frame + PREVIOUS_FRAME,
		    i + 1 < N_FRAMES ? at(chunk) + frame + FRAME_BYTES : 0, WORD);
		put(chunk, frame + INSTRUCTION, at(code) + START + 8, WORD);
		put(chunk, frame + OWNER, i + 1 < N_FRAMES ? 0 : 3,
		    1); // FRAME_OWNED_BY_INTERPRETER
	}
	chunk[1] = CHUNK_BYTES;
}

static void make_state(size_t i)
{
	uint64_t *state = states[i], *chunk = chunks[i];

	put(state, PREVIOUS_STATE, i ? at(states[i - 1]) : 0, WORD);
	put(state, NEXT_STATE, i + 1 < N_STATES ? at(states[i + 1]) : 0, WORD);
	put(state, STATE_INTERP, at(interp), WORD);
	put(state, CURRENT_FRAME, at(chunk) + FIRST_FRAME, WORD);
	put(state, NATIVE_ID, (uint64_t)gettid(), WORD);
	put(state, CHUNK, at(chunk), WORD);
	put(state, CHUNK + WORD, at(chunk) + FIRST_FRAME + N_FRAMES * FRAME_BYTES, WORD);
	make_frames(chunk);
}

static void make_all(void)
{
	memset(interp, 0, sizeof(interp));
	memset(states, 0, sizeof(states));
	memset(chunks, 0, sizeof(chunks));
	memset(code, 0, sizeof(code));
	put(runtime, INTERPRETERS, at(interp), WORD);
	put(interp, THREADS, at(states[0]), WORD);
	put(interp, GIL, at(gil), WORD);
	put(gil, LOCKED, 1, 4);
	put(gil, HOLDER, at(states[1]), WORD);
	make_code();
	for (size_t i = 0; i < N_STATES; i++)
		make_state(i);
}

// `words`: of _Py_DebugOffsets.
static bool fits(const uint64_t words[N_WORDS])
{
	int minor;

	python = (struct python){
	    .setup = &setup,
	    .runtime = at(runtime),
	    .code_type = at(&code_type),
	    .string_type = at(&string_type),
	};
	if (!python_layout_read((const uint8_t *)words, &python.layout, &minor))
		return false;
	assert_int_equal(minor, MINOR);
	assert_true(python.layout.is_guess);
	return python_guess_fits(&python, gettid());
}

static void tell(uint64_t words[N_WORDS])
{
	memset(words, 0, PYTHON_OFFSETS_BYTES);
	memcpy(words, "xdebugpy", WORD);
	words[VERSION_WORD] = 3u << 24 | MINOR << 16;
	for (size_t i = 0; i < array_size(told); i++)
		words[told[i].word] = told[i].offset;
}

static int set_up(void **state)
{
	(void)state;
	space.pid = getpid();
	resident_init(&resident, getpid());
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	resident_deinit(&resident);
	return 0;
}

static void test_same(void **state)
{
	uint64_t words[N_WORDS];

	(void)state;
	make_all();
	tell(words);
	assert_true(fits(words));
	assert_int_equal(python.layout.minor, 15);
	assert_int_equal(python.layout.frame_previous, PREVIOUS_FRAME);
}

// A word more or less, before each of those that are read.
static void test_moved(void **state)
{
	uint64_t words[N_WORDS], moved[N_WORDS];

	(void)state;
	make_all();
	tell(words);
	for (size_t i = 0; i < array_size(told); i++) {
		const size_t from = told[i].word, n = N_WORDS - from - 1;
		if (from > 92)
			continue; // only the collector's, whose state may be 0 elsewhere as well
		memcpy(moved, words, sizeof(moved));
		memcpy(moved + from + 1, words + from, n * WORD);
		for (uint64_t filling = 0; filling <= 240; filling += 40) {
			moved[from] = filling;
			if (filling != words[from] && fits(moved))
				fail_msg("a word %#jx more before %zu", (uintmax_t)filling, from);
		}
		memcpy(moved, words, sizeof(moved));
		memcpy(moved + from, words + from + 1, n * WORD);
		if (fits(moved))
			fail_msg("a word less at %zu", from);
	}
}

// An offset that is another one is refused, or nothing reads it.
static void test_changed(void **state)
{
	static const uint8_t harmless[] = {
	    7,  8,  11, 95, // numbers; one interpreter; no collection: all are 0
	    16, 18, 19, 30, // where the GIL's are counted from; a thread that has its tid
	};
	uint64_t words[N_WORDS];

	(void)state;
	make_all();
	for (size_t i = 0; i < array_size(told); i++)
		for (int by = -16; by <= 16; by += 4) {
			tell(words);
			words[told[i].word] += (uint64_t)(int64_t)by;
			if (by && !memchr(harmless, told[i].word, sizeof(harmless)) && fits(words))
				fail_msg("word %u, changed by %d", told[i].word, by);
		}
}

// One part that does not fit is enough; while no thread has called a function, nothing shows it.
static void test_wrong(void **state)
{
	const uint32_t frame = FIRST_FRAME + FRAME_BYTES;
	const struct {
		uint64_t *structure;
		uint32_t offset;
		uint64_t value;
	} wrong[] = {
	    {chunks[0], frame + CODE, at(name)},
	    {chunks[0], frame + INSTRUCTION, at(code) + START},
	    {chunks[0], frame + PREVIOUS_FRAME, 8},
	    {chunks[0], frame + OWNER, 9},
	    {states[1], NATIVE_ID, UINT64_MAX},
	    {states[1], STATE_INTERP, at(states)},
	    {states[1], CHUNK, at(code)},
	    {states[1], PREVIOUS_STATE, at(interp)},
	    {code, FILE_NAME, at(lines)},
	    {code, FILE_NAME + 3 * WORD, at(name)},
	    {code, BYTES_SIZE, 0},
	    {gil, HOLDER, at(&code_type)},
	    {interp, GC + COLLECTING, 2},
	    {interp, THREADS, 0},
	};
	uint64_t words[N_WORDS];

	(void)state;
	tell(words);
	for (size_t i = 0; i < array_size(wrong); i++) {
		make_all();
		put(wrong[i].structure, wrong[i].offset, wrong[i].value, WORD);
		if (fits(words))
			fail_msg("%zu", i);
	}
	make_all();
	for (size_t i = 0; i < N_STATES; i++)
		put(states[i], CURRENT_FRAME, 0, WORD);
	assert_false(fits(words));
}

// Anything at all may be there.
static void test_damaged(void **state)
{
	uint64_t words[N_WORDS];
	size_t n_fitting = 0;

	(void)state;
	srandom(1);
	tell(words);
	for (int i = 0; i < 500; i++) {
		const struct {
			uint64_t *words;
			long n;
		} structures[] = {{interp, 20}, {states[1], 40}, {chunks[0], 48}, {code, 26}};
		const uint64_t values[] = {(uint64_t)random(), 0,           at(states[0]),
		                           at(chunks[1]),      at(code),    at(name),
		                           UINT64_MAX,         at(code) + 1};
		make_all();
		for (int k = 0; k < 2; k++) {
			const long which = random() % 4;
			structures[which].words[random() % structures[which].n] =
			    values[random() % (long)array_size(values)];
		}
		n_fitting += fits(words);
	}
	assert_true(n_fitting > 0 && n_fitting < 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_same),    cmocka_unit_test(test_moved),
	    cmocka_unit_test(test_changed), cmocka_unit_test(test_wrong),
	    cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

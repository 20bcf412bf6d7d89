// SPDX-License-Identifier: MIT
// V8's heap as it is in memory, with damage: functions, scripts and strings are read from the
// fuzzer's own memory, in which they are built whole and then overwritten.
#include <sys/mman.h>
#include <stdlib.h>
#include <unistd.h>

#include "address_space.h"
#include "arch.h"
#include "fuzz.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "resident.h"
#include "run_stats.h"
#include "runtimes.h"
#include "snapshot.h"
#include "unwind.h"
#include "v8.h"

enum {
	IMAGE_BYTES = 1 << 16,
	N_FRAMES = 6,
	N_FUNCTIONS = 3,
	// Where things are in it.
	MAPS = 0x100, // a Map for each type, 0x20 apart
	FUNCTIONS = 0x1000,
	SHARED = 0x2000,
	SCOPES = 0x3000,
	SCRIPT = 0x4000,
	NAMES = 0x5000,
	SOURCE = 0x6000,
	BYTECODES = 0x7000,
	OBJECT_BYTES = 0x100,
	STACK = 0x8000,
	STACK_BYTES = 0x1000,
	FRAME_BYTES = 0x80,
	MAX_FRAMES = 64,
};

enum {
	A_FUNCTION,
	A_SHARED,
	A_SCOPE,
	A_SCRIPT,
	A_BYTECODES,
	ONE_BYTE,
	TWO_BYTE,
	A_CONS,
	A_SLICE,
	A_THIN,
	EXTERN
};

static uint8_t *image;

static void put(uint32_t at, uint64_t value, size_t size)
{
	if (at + size <= IMAGE_BYTES)
		memcpy(image + at, &value, size);
}

static uint64_t address(uint32_t at)
{
	return (uint64_t)(uintptr_t)image + at;
}

static void put_object(uint32_t at, uint32_t to)
{
	put(at, address(to) + 1, 8);
}

static void put_smi(uint32_t at, int32_t value)
{
	put(at, (uint64_t)(uint32_t)value << 32, 8);
}

static void put_map(uint32_t object, uint32_t kind)
{
	put_object(object, MAPS + kind * 0x20);
}

static void build_strings(void)
{
	static const uint32_t kinds[] = {ONE_BYTE, TWO_BYTE, A_CONS, A_SLICE, A_THIN, EXTERN};

	for (uint32_t i = 0; i < array_size(kinds); i++) {
		const uint32_t at = NAMES + i * OBJECT_BYTES;
		put_map(at, kinds[i]);
		put(at + V8_STRING_LENGTH, 8, 4);
		if (i < 2) {
			memcpy(image + at + V8_STRING_DATA, "f\xfcr\xd8r\r\ng\xdex", 10);
		} else {
			put_object(at + V8_STRING_DATA, NAMES + (i - 2) * OBJECT_BYTES);
			put_object(at + V8_STRING_SECOND, NAMES);
		}
	}
	put_smi(NAMES + 3 * OBJECT_BYTES + V8_STRING_SECOND, 0);
	put(NAMES + 5 * OBJECT_BYTES + V8_STRING_SECOND, address(NAMES), 8);
	put_map(SOURCE, ONE_BYTE);
	put(SOURCE + V8_STRING_LENGTH, 200, 4);
	memset(image + SOURCE + V8_STRING_DATA, '\n', 200);
}

static void build_function(const struct v8_layout *layout, uint32_t i)
{
	const uint32_t function = FUNCTIONS + i * OBJECT_BYTES;
	const uint32_t shared = SHARED + i * OBJECT_BYTES;
	const uint32_t scope = SCOPES + i * OBJECT_BYTES;
	const uint32_t first = 8 + 8 * (uint32_t)layout->scope_first;

	put_map(function, A_FUNCTION);
	put_object(function + (uint32_t)layout->function_shared, shared);
	put_map(shared, A_SHARED);
	put_object(shared + (uint32_t)layout->shared_name, scope);
	put_object(shared + (uint32_t)layout->shared_script, SCRIPT);
	put_map(scope, A_SCOPE);
	put_smi(scope + 24, 0);
	if (layout->scope_start)
		put_smi(scope + (uint32_t)layout->scope_start, 10);
	put_object(scope + first, NAMES + (2 * i + 1) * OBJECT_BYTES);
	put_smi(scope + first + 8, -1);
	put_object(scope + first + 16, SCRIPT);
	put_smi(scope + first + 24, 10);
	put_smi(scope + first + 32, 20);
}

static void build(const struct v8_layout *layout)
{
	const int32_t types[] = {
	    [A_FUNCTION] = layout->first_function,
	    [A_SHARED] = layout->shared,
	    [A_SCOPE] = layout->scope,
	    [A_SCRIPT] = layout->script,
	    [A_BYTECODES] = layout->bytecodes,
	    [ONE_BYTE] = 40,
	    [TWO_BYTE] = 32,
	    [A_CONS] = 33,
	    [A_SLICE] = 35,
	    [A_THIN] = 37,
	    [EXTERN] = 42,
	};

	memset(image, 0, IMAGE_BYTES);
	for (uint32_t i = 0; i < array_size(types); i++)
		put(MAPS + i * 0x20 + V8_MAP_TYPE, (uint64_t)types[i], 2);
	build_strings();
	put_map(SCRIPT, A_SCRIPT);
	put_object(SCRIPT + V8_SCRIPT_SOURCE, SOURCE);
	put_object(SCRIPT + V8_SCRIPT_NAME, NAMES + 2 * OBJECT_BYTES);
	put_map(BYTECODES, A_BYTECODES);
	for (uint32_t i = 0; i < N_FUNCTIONS; i++)
		build_function(layout, i);
	for (uint32_t i = 0; i < N_FRAMES; i++) {
		const uint32_t fp = STACK + (i + 1) * FRAME_BYTES;
		put(fp, address(fp + FRAME_BYTES), 8);
		put(fp + 8, 0x1000, 8);
		put_object(fp - 8, SCOPES);
		put_object(fp - 16, FUNCTIONS + i % N_FUNCTIONS * OBJECT_BYTES);
		if (i % 2)
			put_object(fp - 32, BYTECODES);
		put_smi(fp - 40, 60);
	}
}

static void damage(struct input *input)
{
	while (input->left > 0) {
		const uint32_t at = input_u32(input);
		const uint32_t value = at >> 18 & 0x3fff;
		switch (at >> 16 & 3) {
		case 0:
			put(at & 0xffff, value & 0xff, 1);
			break;
		case 1:
			put_object(at & 0xfff8, value << 2 & 0xfff8);
			break;
		case 2:
			put(at & 0xffff, value & 1 ? UINT64_MAX >> (value >> 1 & 63) : value, 8);
			break;
		default:
			put(at & 0xffff, input_u64(input), 8);
		}
	}
}

static void sample(struct v8 *v8, struct profile *profile, const uint32_t modules[2], uint8_t *note)
{
	uint32_t locations[N_FRAMES];
	uint64_t sps[N_FRAMES];
	struct snapshot snapshot = {
	    .regions = {{.start = address(STACK), .size = STACK_BYTES, .bytes = image + STACK}},
	    .n_regions = 1,
	};

	registers_set(&snapshot.registers, ARCH_NATIVE->sp, address(STACK + 0x20));
	for (size_t i = 0; i < N_FRAMES; i++) {
		locations[i] = profile_intern_location(profile, modules[i % 2], 0x1000);
		sps[i] = address(STACK + 16 + (uint32_t)i * FRAME_BYTES);
	}
	struct unwound stack = {
	    .locations = locations,
	    .sps = sps,
	    .n = N_FRAMES,
	    .last_sp = address(STACK + 16 + N_FRAMES * FRAME_BYTES),
	};
	const size_t size = v8_read_note(v8, gettid(), &snapshot, note, SNAPSHOT_MAX_NOTE_BYTES);
	expect(size <= SNAPSHOT_MAX_NOTE_BYTES);
	v8_merge(v8, gettid(), &snapshot, &(struct snapshot_note){note, size}, &stack);
	expect(stack.n <= MAX_FRAMES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t *note;
	struct input input = {data, size};
	struct modules modules = {0};
	struct profile profile = {0};
	struct run_stats stats = {0};
	struct resident resident;
	struct address_space space = {.pid = getpid(), .modules = &modules};

	if (!image) {
		image = mmap(NULL, IMAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		             -1, 0);
		note = memory_alloc(SNAPSHOT_MAX_NOTE_BYTES);
	}
	resident_init(&resident, getpid());
	const struct runtimes_setup setup = {
	    .max_frames = MAX_FRAMES,
	    .space = &space,
	    .resident = &resident,
	    .profile = &profile,
	    .stats = &stats,
	};
	const uint32_t indexes[2] = {
	    modules_add(&modules, MODULE_ANONYMOUS, "[anon]", 0, 0, -1)->index,
	    modules_add(&modules, MODULE_FILE, "/node", 1, 2, -1)->index,
	};
	struct module *names = modules_add(&modules, MODULE_RUNTIME, "[v8]", 0, 0, -1);
	const struct v8_layout *layout = v8_layout_of(input_u8(&input) % V8_LAYOUTS);
	struct v8 v8 = {
	    .setup = &setup,
	    .layout = layout,
	    .functions = {.layout = layout, .names = names->frame_names},
	    .names_module = names->index,
	};
	build(layout);
	damage(&input);
	for (int i = 0; i < 2; i++) // the second time with what is known
		sample(&v8, &profile, indexes, note);
	v8_functions_deinit(&v8.functions);
	free(v8.locations);
	resident_deinit(&resident);
	profile_deinit(&profile);
	modules_deinit(&modules);
	return 0;
}

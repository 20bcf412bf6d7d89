// SPDX-License-Identifier: MIT
// An interpreter as it is in memory, with damage: threads, frames, code objects, strings and line
// tables are read from the fuzzer's own memory, in which they are built whole and then overwritten.
#include <sys/mman.h>
#include <unistd.h>

#include "address_space.h"
#include "fuzz.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "python.h"
#include "resident.h"
#include "run_stats.h"
#include "runtimes.h"
#include "snapshot.h"
#include "unwind.h"

enum {
	IMAGE_BYTES = 1 << 16,
	// Where things are in it.
	RUNTIME = 0x0,
	INTERP = 0x1000,
	STATE = 0x2000,
	CHUNK = 0x3000,
	FRAME_BYTES = 0x100,
	N_FRAMES = 6,
	CODES = 0x5000,
	CODE_BYTES = 0x200,
	NAME = 0x7000,
	FILE_NAME = 0x7200,
	LINES = 0x7400,
	STACK = 0x8000, // the machine's, with a frame of it every FRAME_BYTES
	STACK_BYTES = 0x1000,
	PTHREAD = 0xa000,
	PTHREAD_TID = 720,
	TASK = 0xb000,
	TASK_NAME = 0x20,     // in it
	RUNNING_TASK = 0x800, // in the thread's state
	CODE_TYPE = 0xe000,
	STRING_TYPE = 0xe100,
	MAX_FRAMES = 64,
};

static uint8_t *image;

static void put(uint32_t at, uint64_t value, size_t size)
{
	if (at + size <= IMAGE_BYTES)
		memcpy(image + at, &value, size);
}

static void put_pointer(uint32_t at, uint32_t to)
{
	put(at, (uint64_t)(uintptr_t)image + to, sizeof(uint64_t));
}

static uint32_t on_stack(size_t i)
{
	return STACK + (uint32_t)i * FRAME_BYTES + 0x40;
}

// Every other frame is a shim, or has a C structure, or none: as the version has it.
static void build_frames(const struct python_layout *layout)
{
	for (uint32_t i = 0; i < N_FRAMES; i++) {
		const bool is_shim = layout->shim_owner == 3 && i % 2;
		const uint32_t frame = is_shim ? on_stack(i) : CHUNK + 24 + i * FRAME_BYTES;
		const bool next_is_shim = layout->shim_owner == 3 && (i + 1) % 2;
		const uint32_t next =
		    next_is_shim ? on_stack(i + 1) : CHUNK + 24 + (i + 1) * FRAME_BYTES;
		const uint32_t code = CODES + i % 2 * CODE_BYTES;
		put_pointer(frame + layout->frame_code, code);
		if (i + 1 < N_FRAMES)
			put_pointer(frame + layout->frame_previous, next);
		if (layout->minor <= 10)
			put(frame + layout->frame_instr, 2, sizeof(uint32_t));
		else
			put_pointer(frame + layout->frame_instr, code + layout->code_start + 4);
		if (layout->frame_owner)
			put(frame + layout->frame_owner, is_shim ? 3 : 0, 1);
		if (layout->frame_entry)
			put(frame + layout->frame_entry, i % 2, 1);
		put_pointer(on_stack(i) + 8 * (layout->minor < 10), frame);
		if (layout->thread_cframe) {
			put_pointer(on_stack(i) + layout->cframe_frame, frame);
			if (i + 1 < N_FRAMES)
				put_pointer(on_stack(i) + layout->cframe_previous, on_stack(i + 1));
			else
				put_pointer(on_stack(i) + layout->cframe_previous,
				            STATE + layout->thread_root_cframe);
		}
	}
}

static void build_objects(const struct python_layout *layout)
{
	for (uint32_t code = CODES; code < CODES + 2 * CODE_BYTES; code += CODE_BYTES) {
		put_pointer(code + layout->object_type, CODE_TYPE);
		put_pointer(code + layout->code_file, FILE_NAME);
		put_pointer(code + layout->code_name, NAME);
		if (layout->code_qualname)
			put_pointer(code + layout->code_qualname, NAME);
		put_pointer(code + layout->code_lines, LINES);
		put(code + layout->code_first_line, code, sizeof(uint32_t));
	}
	for (uint32_t string = NAME; string <= FILE_NAME; string += FILE_NAME - NAME) {
		put_pointer(string + layout->object_type, STRING_TYPE);
		put(string + layout->string_length, 12, sizeof(uint64_t));
		put(string + layout->string_state, 1 << 2 | 1 << 5 | 1 << 6, sizeof(uint32_t));
		memcpy(image + string + layout->string_ascii, "function.py", 12);
	}
	put(LINES + layout->bytes_size, 16, sizeof(uint64_t));
	memset(image + LINES + layout->bytes_data, 0x81, 16);
}

static void build(const struct python_layout *layout)
{
	memset(image, 0, IMAGE_BYTES);
	put_pointer(RUNTIME + layout->interpreters, INTERP);
	put_pointer(INTERP + layout->interp_threads, STATE);
	put_pointer(STATE + layout->thread_interp, INTERP);
	if (layout->thread_native_id)
		put(STATE + layout->thread_native_id, (uint64_t)gettid(), sizeof(uint64_t));
	else
		put_pointer(STATE + layout->thread_id, PTHREAD);
	put(PTHREAD + PTHREAD_TID, (uint64_t)gettid(), sizeof(uint32_t));
	if (layout->thread_chunk) {
		put_pointer(STATE + layout->thread_chunk, CHUNK);
		put_pointer(STATE + layout->thread_chunk + 8, CHUNK + 24 + N_FRAMES * FRAME_BYTES);
	}
	if (layout->thread_cframe)
		put_pointer(STATE + layout->thread_cframe, on_stack(0));
	if (layout->thread_frame)
		put_pointer(STATE + layout->thread_frame, CHUNK + 24);
	build_frames(layout);
	build_objects(layout);
}

static void damage(struct input *input)
{
	while (input->left > 0) {
		const uint32_t at = input_u32(input);
		const uint32_t value = at >> 18 & 0xffff;
		switch (at >> 16 & 3) {
		case 0:
			put(at & 0xffff, value & 0xff, 1);
			break;
		case 1:
			put_pointer(at & 0xffff, value);
			break;
		case 2:
			put(at & 0xffff, value & 1 ? UINT64_MAX >> (value >> 1 & 63) : value, 8);
			break;
		default:
			put(at & 0xffff, input_u64(input), 8);
		}
	}
}

// A task that waits for itself.
static void build_task(void)
{
	put_pointer(STATE + RUNNING_TASK, TASK);
	put_pointer(TASK + TASK_NAME, NAME);
	put_pointer(TASK + TASK_NAME + 8, TASK);
	put(TASK + TASK_NAME + 16, 1, 1);
}

// Of a version that says where its fields are, and is not to be believed.
static struct python_layout told_layout(struct input *input)
{
	uint8_t offsets[PYTHON_OFFSETS_BYTES];
	struct python_layout layout;
	int minor;

	input_take(input, offsets, sizeof(offsets));
	memcpy(offsets, "xdebugpy", PYTHON_COOKIE_BYTES);
	offsets[10] = (uint8_t)(13 + offsets[10] % 4);   // of PY_VERSION_HEX
	for (size_t i = 16; i < sizeof(offsets); i += 8) // mostly small numbers
		if (offsets[i] % 8)
			memset(offsets + i + 1, 0, 7);
	return python_layout_read(offsets, &layout, &minor) ? layout : *python_layout_of(12);
}

static struct python_layout choose_layout(struct input *input)
{
	const uint8_t which = input_u8(input) % 10;

	return which < 7 ? *python_layout_of(6 + which) : told_layout(input);
}

struct made_stack {
	uint32_t locations[N_FRAMES + 1];
	uint64_t sps[N_FRAMES + 1];
	struct unwound unwound;
};

static void make_stack(struct profile *profile, uint32_t module, uint64_t eval,
                       struct made_stack *ret)
{
	for (size_t i = 0; i <= N_FRAMES; i++) {
		ret->locations[i] = profile_intern_location(profile, module, eval);
		ret->sps[i] = (uint64_t)(uintptr_t)image + STACK + i * FRAME_BYTES;
	}
	ret->unwound = (struct unwound){
	    .locations = ret->locations,
	    .sps = ret->sps,
	    .n = N_FRAMES + 1,
	    .last_sp = (uint64_t)(uintptr_t)image + STACK + STACK_BYTES,
	};
}

static void sample(struct python *python, struct made_stack *stack, uint8_t *note)
{
	struct snapshot snapshot = {
	    .regions = {{.start = (uint64_t)(uintptr_t)image + STACK,
	                 .size = STACK_BYTES,
	                 .bytes = image + STACK}},
	    .n_regions = 1,
	};
	const size_t size = python_read(python, gettid(), &snapshot, note, SNAPSHOT_MAX_NOTE_BYTES);

	expect(size <= SNAPSHOT_MAX_NOTE_BYTES);
	python_merge(python, gettid(), &snapshot, &(struct snapshot_note){note, size},
	             &stack->unwound);
	expect(stack->unwound.n <= MAX_FRAMES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t *note;
	struct input input = {data, size};
	struct modules modules = {0};
	struct profile profile = {0};
	struct run_stats stats = {0};
	struct resident resident;
	struct address_space space = {.pid = getpid()};
	struct made_stack stack;

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
	struct module *module = modules_add(&modules, MODULE_FILE, "/python", 1, 2, -1);
	struct module *names = modules_add(&modules, MODULE_RUNTIME, "[python]", 0, 0, -1);
	struct python python = {
	    .setup = &setup,
	    .layout = choose_layout(&input),
	    .runtime = (uint64_t)(uintptr_t)image + RUNTIME,
	    .code_type = (uint64_t)(uintptr_t)image + CODE_TYPE,
	    .string_type = (uint64_t)(uintptr_t)image + STRING_TYPE,
	    .natives = {.module = module, .modules = &modules, .eval = 0x1000, .eval_bytes = 0x100},
	    .tasks = {.name = TASK_NAME,
	              .awaited_by = TASK_NAME + 8,
	              .is_task = TASK_NAME + 16,
	              .awaited_by_many = TASK_NAME + 17,
	              .bytes = TASK_NAME + 24,
	              .running = RUNNING_TASK},
	    .names_module = names->index,
	    .codes.names = names->frame_names,
	};
	build(&python.layout);
	build_task();
	damage(&input);
	python_threads_update(&python, gettid(), 1);
	for (int i = 0; i < 2; i++) { // the second time with what the first has shown
		make_stack(&profile, module->index, 0x1000, &stack);
		sample(&python, &stack, note);
	}
	python_threads_destroy(python.threads);
	python_codes_deinit(&python.codes);
	python_natives_deinit(&python.natives);
	free(python.locations);
	resident_deinit(&resident);
	profile_deinit(&profile);
	modules_deinit(&modules);
	return 0;
}

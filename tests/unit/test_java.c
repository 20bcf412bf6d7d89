// SPDX-License-Identifier: MIT
// Java: tables, code, methods and frames of a HotSpot that is made by hand (java_image.h), in the
// layouts of JDK 17 and 25.
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "address_space.h"
#include "arch.h"
#include "frame_names.h"
#include "hotspot_frame.h"
#include "java.h"
#include "java_image.h"
#include "java_name.h"
#include "java_stream.h"
#include "java_unloads.h"
#include "memory.h"
#include "profile.h"
#include "run_stats.h"
#include "runtimes.h"
#include "snapshot.h"
#include "unit.h"
#include "unwind.h"

struct world {
	struct java_image image;
	struct resident resident;
	struct address_space space;
	struct runtimes_setup setup;
	struct frame_names names;
	struct java java;
	struct snapshot snapshot;
	struct registers registers;
};

static void world_init(struct world *world, bool is_new)
{
	*world = (struct world){.image = {memory_alloc(JAVA_IMAGE_BYTES), is_new}};
	java_image_build(&world->image);
	resident_init(&world->resident, getpid());
	world->space = (struct address_space){.pid = getpid(), .tid = getpid()};
	world->setup =
	    (struct runtimes_setup){.space = &world->space, .resident = &world->resident};
	struct java *java = &world->java;
	java->setup = &world->setup;
	java->source = (struct java_source){
	    .memory = {.resident = &world->resident, .tid = getpid()},
	    .find_variable = java_image_variable,
	    .find_string = java_image_string,
	    .context = &world->image,
	};
	java->code = (struct java_code){
	    .source = &java->source, .layout = &java->layout, .heaps = &java->heaps};
	java->methods = (struct java_methods){.layout = &java->layout, .names = &world->names};
	assert_int_equal(java_layout_read(&java->source, &java->layout), JAVA_LAYOUT_KNOWN);
	java_objects_init(&java->objects, &java->layout);
	assert_true(java_heaps_read(&java->source.memory, &java->layout, &java->heaps));
	world->snapshot = (struct snapshot){
	    .regions = {{.start = java_image_address(&world->image, JAVA_IMAGE_STACK),
	                 .size = JAVA_IMAGE_STACK_BYTES,
	                 .bytes = world->image.bytes + JAVA_IMAGE_STACK}},
	    .n_regions = 1,
	};
}

static void world_deinit(struct world *world)
{
	java_code_deinit(&world->java.code);
	java_methods_deinit(&world->java.methods);
	java_threads_deinit(&world->java.threads);
	java_replay_deinit(&world->java.replay);
	frame_names_deinit(&world->names);
	resident_deinit(&world->resident);
	free(world->java.frames);
	free(world->java.locations);
	free(world->image.bytes);
}

static uint64_t at(const struct world *world, uint32_t place)
{
	return java_image_address(&world->image, place);
}

static void put_word(struct world *world, uint32_t place, uint64_t word)
{
	java_image_put(&world->image, place, word, sizeof(word));
}

static void test_layout(void **state)
{
	(void)state;
	for (int is_new = 0; is_new < 2; is_new++) {
		struct world world;
		world_init(&world, is_new);
		assert_int_equal(world.java.layout.major, is_new ? 25 : 17);
		assert_int_equal(world.java.layout.block_bytes, is_new ? 8 : 16);
		assert_int_equal(world.java.layout.code_begin, is_new ? JAVA_NO_FIELD : 24);
		world_deinit(&world);
	}
}

// A field that is missing, or cannot be an offset, and tables without an end.
static void test_damaged_layout(void **state)
{
	struct world world;
	struct java_layout layout;

	(void)state;
	world_init(&world, false);
	struct java_source *source = &world.java.source;
	char *name = (char *)memmem(world.image.bytes, JAVA_IMAGE_BYTES, "_constMethod", 13);
	name[1] = 'X';
	assert_int_equal(java_layout_read(source, &layout), JAVA_LAYOUT_UNKNOWN);
	assert_int_equal(layout.major, 17);
	name[1] = 'c';
	assert_int_equal(java_layout_read(source, &layout), JAVA_LAYOUT_KNOWN);
	const uint64_t stride =
	    java_image_variable(&world.image, "gHotSpotVMStructEntryArrayStride");
	*(uint64_t *)(uintptr_t)stride = UINT64_MAX;
	assert_int_equal(java_layout_read(source, &layout), JAVA_LAYOUT_EARLY);
	*(uint64_t *)(uintptr_t)stride = 0;
	assert_int_equal(java_layout_read(source, &layout), JAVA_LAYOUT_EARLY);
	world_deinit(&world);
}

// The last byte of the largest structures: the word there is read whole.
static void test_far_fields(void **state)
{
	struct world world;
	struct java_blob blob;

	(void)state;
	world_init(&world, false);
	struct java *java = &world.java;
	java->layout.block_bytes = java->layout.blob_name = JAVA_MAX_STRUCTURE - 1;
	assert_false(
	    java_blob_read(&java->source, &java->layout, at(&world, JAVA_IMAGE_COMPILED), &blob));
	world_deinit(&world);
}

static void test_blocks(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, false);
	const struct java *java = &world.java;
	const struct java_memory *memory = &java->source.memory;
	assert_int_equal(java_heaps_find(&java->heaps, memory, at(&world, JAVA_IMAGE_RETURN)),
	                 at(&world, JAVA_IMAGE_COMPILED));
	assert_int_equal(java_heaps_find(&java->heaps, memory, at(&world, JAVA_IMAGE_COMPILED)),
	                 at(&world, JAVA_IMAGE_COMPILED));
	assert_int_equal(java_heaps_find(&java->heaps, memory, at(&world, JAVA_IMAGE_HEAP)), 0);
	assert_int_equal(java_heaps_find(&java->heaps, memory, at(&world, JAVA_IMAGE_STACK)), 0);
	world_deinit(&world);
}

static void test_scopes(void **state)
{
	(void)state;
	for (int is_new = 0; is_new < 2; is_new++) {
		struct world world;
		struct java_blob blob;
		struct java_scope scopes[JAVA_MAX_SCOPES];
		world_init(&world, is_new);
		const struct java *java = &world.java;
		const struct java_memory *memory = &java->source.memory;
		const uint64_t pc = at(&world, JAVA_IMAGE_RETURN);
		assert_true(java_blob_read(&java->source, &java->layout,
		                           at(&world, JAVA_IMAGE_COMPILED), &blob));
		assert_int_equal(blob.kind, JAVA_COMPILED);
		assert_int_equal(blob.frame_bytes, JAVA_IMAGE_FRAME_BYTES);
		assert_int_equal(java_blob_scopes(memory, &java->layout, &blob, pc, true, scopes),
		                 2);
		assert_int_equal(scopes[0].method, at(&world, JAVA_IMAGE_INNER));
		assert_int_equal(scopes[0].bci, JAVA_IMAGE_LARGE_BCI);
		assert_int_equal(scopes[1].method, at(&world, JAVA_IMAGE_OUTER));
		assert_int_equal(scopes[1].bci, 5);
		assert_true(java_blob_has_return(memory, &java->layout, &blob, pc));
		// Exactly there; but an interrupted method is on the way to the next place.
		assert_false(java_blob_has_return(memory, &java->layout, &blob, pc - 1));
		assert_int_equal(
		    java_blob_scopes(memory, &java->layout, &blob, pc - 1, true, scopes), 0);
		assert_int_equal(
		    java_blob_scopes(memory, &java->layout, &blob, pc - 1, false, scopes), 2);
		assert_int_equal(
		    java_blob_scopes(memory, &java->layout, &blob, pc + 1, false, scopes), 0);
		world_deinit(&world);
	}
}

static void test_methods(void **state)
{
	(void)state;
	for (int is_new = 0; is_new < 2; is_new++) {
		struct world world;
		uint32_t line;
		world_init(&world, is_new);
		struct java *java = &world.java;
		const struct java_method *method = java_methods_get(
		    &java->methods, &java->source.memory, at(&world, JAVA_IMAGE_OUTER));
		assert_non_null(method);
		const struct frame_function *function =
		    frame_names_find(&world.names, frame_names_address(method->function, 0), &line);
		assert_string_equal(function->name, "org.example.Outer.run");
		assert_string_equal(function->file, "Outer.java");
		assert_int_equal(java_method_line(&java->layout, method, 0), JAVA_IMAGE_LINE);
		assert_int_equal(java_method_line(&java->layout, method, -1), JAVA_IMAGE_LINE);
		assert_int_equal(java_method_line(&java->layout, method, 4), JAVA_IMAGE_LINE);
		assert_int_equal(java_method_line(&java->layout, method, 5), JAVA_IMAGE_LINE + 7);
		assert_int_equal(java_method_line(&java->layout, method, 15), JAVA_IMAGE_LINE + 7);
		const uint64_t bytecodes = at(&world, JAVA_IMAGE_CONST + JAVA_IMAGE_CONST_BYTES);
		assert_int_equal(java_method_bci(&java->layout, method, bytecodes + 3), 3);
		assert_int_equal(java_method_bci(&java->layout, method, bytecodes - 1), -1);
		assert_int_equal(java_method_bci(&java->layout, method, bytecodes + 16), -1);
		assert_null(java_methods_get(&java->methods, &java->source.memory,
		                             at(&world, JAVA_IMAGE_STACK)));
		world_deinit(&world);
	}
}

static void assert_name(const char *class, const char *expected)
{
	_cleanup_free_ char *name = java_name_method(class, "run");

	assert_string_equal(name, expected);
}

static void test_names(void **state)
{
	(void)state;
	assert_name("java/lang/Thread", "java.lang.Thread.run");
	assert_name("Main$$Lambda$14", "Main$$Lambda.run"); // JDK 11
	assert_name("Main$$Lambda$36+0x00007efc54006ee0", "Main$$Lambda.run");
	assert_name("a/Main$$Lambda+0x00007efc54006ee0", "a.Main$$Lambda.run");
	assert_name("java/lang/invoke/LambdaForm$MH+0x01", "java.lang.invoke.LambdaForm$MH.run");
	assert_name("Main$1", "Main$1.run");
}

static void test_stream(void **state)
{
	const uint8_t bytes[] = {191, 192, 0, 255, 255, 255, 255, 255};
	struct java_stream stream = {.at = bytes, .end = bytes + sizeof(bytes)};

	(void)state;
	assert_int_equal(java_stream_unsigned(&stream), 191);
	assert_int_equal(java_stream_unsigned(&stream), 192);
	java_stream_unsigned(&stream); // five bytes at most
	assert_ptr_equal(stream.at, stream.end);
	assert_int_equal(java_stream_unsigned(&stream), 0);
	const uint8_t sign[] = {3};
	stream = (struct java_stream){.at = sign, .end = sign + 1};
	assert_int_equal(java_stream_signed(&stream), -2);
}

static void set_frame(struct world *world, uint32_t pc, uint32_t sp, uint64_t fp)
{
	const struct arch *arch = ARCH_NATIVE;

	world->registers.known = 0;
	registers_set(&world->registers, arch->pc, at(world, pc));
	registers_set(&world->registers, arch->sp, at(world, sp));
	if (fp)
		registers_set(&world->registers, arch->fp, fp);
}

static void assert_frame(const struct world *world, uint64_t pc, uint32_t sp, uint64_t fp)
{
	const struct arch *arch = ARCH_NATIVE;

	assert_int_equal(world->registers.value[arch->pc], pc);
	assert_int_equal(world->registers.value[arch->sp], at(world, sp));
	assert_int_equal(registers_know(&world->registers, arch->fp), fp != 0);
	if (fp)
		assert_int_equal(world->registers.value[arch->fp], fp);
}

static enum java_stepped step(struct world *world, bool is_return)
{
	return java_step(&world->java, &world->snapshot, 0, true, is_return, &world->registers);
}

// A return address into a compiled method: its frame has one size, whatever the frame pointer is.
static void test_compiled_frame(void **state)
{
	const uint32_t sp = JAVA_IMAGE_STACK + 0x100;
	const uint32_t end = sp + JAVA_IMAGE_FRAME_BYTES;
	struct world world;

	(void)state;
	world_init(&world, false);
	put_word(&world, end - 8, 0x1234);
	put_word(&world, end - 16, 0x5678);
	set_frame(&world, JAVA_IMAGE_RETURN, sp, 0);
	assert_int_equal(step(&world, true), JAVA_STEP_DONE);
	assert_frame(&world, 0x1234, end, 0x5678);
	assert_int_equal(world.java.n_frames, 1);
	assert_int_equal(world.java.frames[0].kind, JAVA_FRAME_COMPILED);
	assert_int_equal(world.java.frames[0].pc, at(&world, JAVA_IMAGE_RETURN));
	// It is to be deoptimized: the frame says where it was.
	put_word(&world, sp + JAVA_IMAGE_ORIG_PC, at(&world, JAVA_IMAGE_RETURN));
	set_frame(&world, JAVA_IMAGE_DEOPT, sp, 0);
	assert_int_equal(step(&world, true), JAVA_STEP_DONE);
	assert_frame(&world, 0x1234, end, 0x5678);
	assert_int_equal(world.java.frames[0].pc, at(&world, JAVA_IMAGE_RETURN));
	// Beyond the copy.
	set_frame(&world, JAVA_IMAGE_RETURN, JAVA_IMAGE_STACK + JAVA_IMAGE_STACK_BYTES - 16, 0);
	assert_int_equal(step(&world, true), JAVA_STEP_UNREADABLE);
	world_deinit(&world);
}

// A method that was interrupted in its middle, with words pushed: the return address is the first
// word that can be one.
static void test_pushed_words(void **state)
{
	const uint32_t sp = JAVA_IMAGE_STACK + 0x100;
	const uint32_t end = sp + 16 + JAVA_IMAGE_FRAME_BYTES;
	struct world world;

	(void)state;
	world_init(&world, true);
	put_word(&world, end - 24, at(&world, JAVA_IMAGE_RETURN) + 1);
	put_word(&world, end - 8, at(&world, JAVA_IMAGE_RETURN));
	put_word(&world, end - 16, 0x5678);
	set_frame(&world, JAVA_IMAGE_CODE + 0x18, sp, 0);
	assert_int_equal(step(&world, false), JAVA_STEP_DONE);
	assert_frame(&world, at(&world, JAVA_IMAGE_RETURN), end, 0x5678);
	world_deinit(&world);
}

static void test_interpreted_frame(void **state)
{
	const uint32_t sp = JAVA_IMAGE_STACK + 0x100, fp = sp + 0x60, caller_sp = sp + 0x90;
	struct world world;

	(void)state;
	world_init(&world, false);
	put_word(&world, fp + (uint32_t)HOTSPOT_METHOD_AT, at(&world, JAVA_IMAGE_OUTER));
	put_word(&world, fp + (uint32_t)HOTSPOT_BYTECODE_AT, 0x77);
	put_word(&world, fp + (uint32_t)HOTSPOT_CALLER_SP_AT, at(&world, caller_sp));
	put_word(&world, fp, 0x5678);
	put_word(&world, fp + HOTSPOT_RETURN_AT, 0x1234);
	set_frame(&world, JAVA_IMAGE_INTERPRETER, sp, 0);
	assert_int_equal(step(&world, true), JAVA_STEP_NEEDS_REGISTER);
	set_frame(&world, JAVA_IMAGE_INTERPRETER, sp, at(&world, fp));
	assert_int_equal(step(&world, true), JAVA_STEP_DONE);
	assert_frame(&world, 0x1234, caller_sp, 0x5678);
	assert_int_equal(world.java.frames[0].kind, JAVA_FRAME_INTERPRETED);
	assert_int_equal(world.java.frames[0].method, at(&world, JAVA_IMAGE_OUTER));
	assert_int_equal(world.java.frames[0].saved_bytecode, 0x77);
	// It is still being made: what is below SP is of another call.
	set_frame(&world, JAVA_IMAGE_INTERPRETER, fp, at(&world, fp));
	registers_set(&world.registers, hotspot_frame_method, at(&world, JAVA_IMAGE_INNER));
	registers_set(&world.registers, hotspot_frame_bytecode, at(&world, caller_sp + 8));
	assert_int_equal(step(&world, false), JAVA_STEP_DONE);
	assert_frame(&world, 0x1234, caller_sp + 8, 0x5678);
	assert_int_equal(world.java.frames[0].method, at(&world, JAVA_IMAGE_INNER));
	// A frame pointer below SP is of another use.
	set_frame(&world, JAVA_IMAGE_INTERPRETER, sp, at(&world, sp - 8));
	assert_int_equal(step(&world, true), JAVA_STEP_UNKNOWN);
	world_deinit(&world);
}

static void test_stubs(void **state)
{
	const uint32_t sp = JAVA_IMAGE_STACK + 0x100, fp = sp + 0x80;
	struct world world;

	(void)state;
	world_init(&world, false);
	assert_true(java_claims(&world.java, at(&world, JAVA_IMAGE_STUB)));
	assert_false(java_claims(&world.java, at(&world, JAVA_IMAGE_STACK)));
	put_word(&world, sp + JAVA_IMAGE_STUB_FRAME_BYTES - 8, 0x1234);
	put_word(&world, sp + JAVA_IMAGE_STUB_FRAME_BYTES - 16, 0x5678);
	set_frame(&world, JAVA_IMAGE_STUB, sp, 0);
	assert_int_equal(step(&world, true), JAVA_STEP_DONE);
	assert_frame(&world, 0x1234, sp + JAVA_IMAGE_STUB_FRAME_BYTES, 0x5678);
	// Without a frame: only if a call has come there.
	set_frame(&world, JAVA_IMAGE_FRAMELESS, sp, 0x99);
	assert_int_equal(step(&world, false), JAVA_STEP_UNKNOWN);
	put_word(&world, sp, at(&world, JAVA_IMAGE_RETURN));
	assert_int_equal(step(&world, false), JAVA_STEP_DONE);
	assert_frame(&world, at(&world, JAVA_IMAGE_RETURN), sp + 8, 0x99);
	// It has copied arguments there: mov %rsp, %r13; sub $0x20, %rsp.
	memcpy(world.image.bytes + JAVA_IMAGE_FRAMELESS - 16, "\x4c\x8b\xec\x48\x83\xec\x20", 7);
	for (uint32_t moved = 0x20; moved <= 0x28; moved += 8) {
		set_frame(&world, JAVA_IMAGE_FRAMELESS, sp, 0x99);
		registers_set(&world.registers, hotspot_frame_bytecode, at(&world, sp + moved));
		assert_int_equal(step(&world, false), JAVA_STEP_DONE);
		assert_frame(&world, at(&world, JAVA_IMAGE_RETURN), sp + (moved == 0x20 ? 0x20 : 8),
		             0x99);
	}
	// Back to C++, whose registers the stub has saved.
	put_word(&world, fp + (uint32_t)hotspot_frame_saved[0].at, 0x42);
	put_word(&world, fp, 0x5678);
	put_word(&world, fp + HOTSPOT_RETURN_AT, 0x1234);
	set_frame(&world, JAVA_IMAGE_CALL_STUB, sp, at(&world, fp));
	assert_int_equal(step(&world, true), JAVA_STEP_DONE);
	assert_frame(&world, 0x1234, fp + 16, 0x5678);
	assert_int_equal(world.registers.value[hotspot_frame_saved[0].number], 0x42);
	world_deinit(&world);
}

// Another method was compiled into the memory of the one that was known.
static void test_reused_code(void **state)
{
	const uint32_t sp = JAVA_IMAGE_STACK + 0x100;
	const uint32_t id_at = JAVA_IMAGE_COMPILED + 16 + 64;
	struct world world;

	(void)state;
	world_init(&world, false);
	struct java_code *code = &world.java.code;
	const uint64_t pc = at(&world, JAVA_IMAGE_RETURN);
	put_word(&world, sp, pc);
	java_code_begin(code, &world.snapshot);
	struct java_site *site = java_code_find(code, pc, true);
	java_code_add_location(code, site, 17);
	java_code_begin(code, &world.snapshot);
	assert_int_equal(java_code_find(code, pc, true)->count, 1);
	java_image_put(&world.image, id_at, JAVA_IMAGE_COMPILE_ID + 1, 4);
	assert_int_equal(java_code_find(code, pc, true)->count, 1); // not looked at again
	java_code_begin(code, &world.snapshot);
	assert_int_equal(java_code_find(code, pc, true)->count, 0);
	java_image_put(&world.image, JAVA_IMAGE_COMPILED + 8, 0, 1); // it was thrown away
	java_code_begin(code, &world.snapshot);
	assert_null(java_code_find(code, pc, true));
	world_deinit(&world);
}

// Other code takes the place of the method while its tables are read: it is not named by them.
static void test_code_lost(void **state)
{
	const uint32_t sp = JAVA_IMAGE_STACK + 0x100;
	const uint32_t id_at = JAVA_IMAGE_COMPILED + 16 + 64;
	const struct java_note note = {0};
	const struct snapshot_note bytes = {(const uint8_t *)&note, sizeof(note)};
	struct profile profile = {0};
	struct run_stats stats = {0};
	struct world world;

	(void)state;
	world_init(&world, false);
	world.setup.profile = &profile;
	world.setup.stats = &stats;
	world.setup.max_frames = 8;
	for (size_t n = 1; n <= 2; n++) {
		uint32_t location = UINT32_MAX;
		uint64_t frame = at(&world, sp);
		struct unwound stack = {.locations = &location, .sps = &frame, .n = 1};
		set_frame(&world, JAVA_IMAGE_RETURN, sp, 0);
		assert_int_equal(step(&world, true), JAVA_STEP_DONE);
		java_image_put(&world.image, id_at, JAVA_IMAGE_COMPILE_ID + 1, 4);
		assert_true(java_merge(&world.java, getpid(), &world.snapshot, &bytes, &stack));
		assert_int_equal(stack.n, n);
		assert_int_equal(stack.locations[0] == UINT32_MAX, n == 1);
	}
	profile_deinit(&profile);
	world_deinit(&world);
}

// Merges a stack of one interpreted frame, which was copied when so many classes had been unloaded.
// Returns the method's name; NULL: it has none.
static const char *merged_name(struct world *world, uint64_t unloaded)
{
	const struct java_note note = {.unloaded = unloaded};
	const struct snapshot_note bytes = {(const uint8_t *)&note, sizeof(note)};
	const struct profile *profile = world->setup.profile;
	uint32_t location = UINT32_MAX, line;
	uint64_t sp = at(world, JAVA_IMAGE_STACK);
	struct unwound stack = {.locations = &location, .sps = &sp, .n = 1};

	world->java.n_frames = 0;
	*array_push(world->java.frames, world->java.n_frames, world->java.frames_capacity) =
	    (struct java_frame){
	        .sp = sp, .kind = JAVA_FRAME_INTERPRETED, .method = at(world, JAVA_IMAGE_OUTER)};
	assert_true(java_merge(&world->java, getpid(), &world->snapshot, &bytes, &stack));
	assert_int_equal(stack.n, 1);
	if (stack.locations[0] == UINT32_MAX)
		return NULL;
	return frame_names_find(&world->names, profile->locations[stack.locations[0]].address,
	                        &line)
	    ->name;
}

// A name that is known is asked for again when classes were unloaded before the stack was copied,
// and not before that. One that is not known is not read when some were unloaded after it.
static void test_names_of_unloaded(void **state)
{
	const char *outer = "org.example.Outer.run", *inner = "org.example.Outer.work";
	struct profile profile = {0};
	struct run_stats stats = {0};
	struct world world;

	(void)state;
	world_init(&world, false);
	world.setup.profile = &profile;
	world.setup.stats = &stats;
	world.setup.max_frames = 8;
	world.java.unloads = at(&world, JAVA_IMAGE_UNLOADED);
	world.java.unloaded = 5;
	put_word(&world, JAVA_IMAGE_UNLOADED, 5);
	assert_string_equal(merged_name(&world, 5), outer);
	// Another class takes its place: the method of the older stack is still the one that it
	// was.
	put_word(&world, JAVA_IMAGE_UNLOADED, 6);
	memcpy(world.image.bytes + JAVA_IMAGE_OUTER, world.image.bytes + JAVA_IMAGE_INNER,
	       JAVA_IMAGE_INNER - JAVA_IMAGE_OUTER);
	assert_string_equal(merged_name(&world, 5), outer);
	assert_string_equal(merged_name(&world, 6), inner);
	assert_null(merged_name(&world, 5)); // what it was is forgotten
	java_methods_clear(&world.java.methods);
	world.java.unloaded = 6;
	put_word(&world, JAVA_IMAGE_UNLOADED, 7);
	assert_null(merged_name(&world, 6));
	assert_string_equal(merged_name(&world, 7), inner);
	// If it cannot be told whether classes were unloaded, nothing is kept.
	world.java.unloads = 0;
	assert_string_equal(merged_name(&world, 0), inner);
	memset(world.image.bytes + JAVA_IMAGE_OUTER, 0, JAVA_IMAGE_INNER - JAVA_IMAGE_OUTER);
	assert_null(merged_name(&world, 0));
	profile_deinit(&profile);
	world_deinit(&world);
}

static void test_unloads(void **state)
{
	struct world world;
	uint64_t address;

	(void)state;
	world_init(&world, false);
	const struct java *java = &world.java;
	assert_true(java_unloads_find(&java->source.memory, &java->layout, &address));
	assert_int_equal(address, at(&world, JAVA_IMAGE_UNLOADED));
	world_deinit(&world);
}

static void assert_top(const char *before, size_t n_before, const char *behind, size_t n_behind,
                       bool is_early, struct hotspot_top expected)
{
	uint8_t code[HOTSPOT_TOP_BYTES];
	struct hotspot_top top;

	memset(code, 0x90, sizeof(code));
	memcpy(code + sizeof(code) / 2 - n_before, before, n_before);
	memcpy(code + sizeof(code) / 2, behind, n_behind);
	hotspot_frame_top(code, n_before, is_early, 0x30, &top);
	assert_int_equal(top.to_return, expected.to_return);
	assert_int_equal(top.has_saved_fp, expected.has_saved_fp);
	assert_int_equal(top.is_made, expected.is_made);
}

#define TOP(before, behind, is_early, ...)                                                         \
	assert_top(before, sizeof(before) - 1, behind, sizeof(behind) - 1, is_early,               \
	           (struct hotspot_top){__VA_ARGS__})

static void test_interrupted(void **state)
{
	(void)state;
	// push %rbp; sub $0x20, %rsp
	TOP("", "\x55\x48\x83\xec\x20", true, 0, false, false);
	TOP("\x55", "\x48\x83\xec\x20", true, 8, true, false);
	TOP("\x55\x48\x83\xec\x20", "\x90", true, 0x28, true, false);
	// sub $0x28, %rsp; mov %rbp, 0x20(%rsp)
	TOP("\x48\x83\xec\x28", "\x48\x89\x6c\x24\x20", true, 0x28, false, false);
	TOP("\x48\x83\xec\x28\x48\x89\x6c\x24\x20", "\x90", true, 0x28, true, false);
	TOP("\x90", "\x90", false, 0x28, true, true);
	// add $0x20, %rsp; pop %rbp; cmp 0x338(%r15), %rsp; ja; ret
	TOP("", "\x48\x83\xc4\x20\x5d", false, 0x28, true, true);
	TOP("", "\x5d\x49\x3b\xa7\x38\x03\x00\x00\x0f\x87\x00\x00\x00\x00\xc3", false, 8, true,
	    false);
	TOP("\x5d", "\x49\x3b\xa7\x38\x03\x00\x00\x0f\x87\x00\x00\x00\x00\xc3", false, 0, false,
	    false);
	// mov 0x108(%r15), %r10; test %eax, (%r10); ret
	TOP("\x5d", "\x4d\x8b\x97\x08\x01\x00\x00\x41\x85\x02\xc3", false, 0, false, false);
}

// What the thread waits for is expected to be told so. `holder` NULL: of nobody.
static void expect_wait(struct world *world, const char *what, uint32_t address, const char *holder,
                        int owner)
{
	const uint64_t lock = java_image_address(&world->image, address);
	_cleanup_free_ char *expected =
	    holder ? memory_printf("%s 0x%" PRIx64 ", held by \"%s\" %d", what, lock, holder, owner)
	           : memory_printf("%s 0x%" PRIx64, what, lock);
	_cleanup_free_ char *text = java_name_futex(&world->java, getpid(), 0);

	assert_string_equal(text ?: "", expected);
}

static const char owner_name[] = "the owner";

#define CLASS "java.util.concurrent.locks.AbstractOwnableSynchronizer"

static void check_monitor(struct world *world, int owner)
{
	struct java_image *image = &world->image;
	const uint32_t monitor = JAVA_IMAGE_MONITOR;

	expect_wait(world, "monitor " CLASS, monitor, owner_name, owner);
	world->java.threads.next_ns = INT64_MAX; // the list is not read again, however slow this is
	// The collector is active: objects may move.
	image->bytes[JAVA_IMAGE_COLLECTOR] = 1;
	expect_wait(world, "monitor", monitor, "test_java", owner);
	image->bytes[JAVA_IMAGE_COLLECTOR] = 0;
	// A class that is none.
	const uint32_t class = JAVA_IMAGE_LOCK + 8;
	java_image_put(image, class, JAVA_IMAGE_OWNER, 4);
	expect_wait(world, "monitor", monitor, owner_name, owner);
	java_image_build(image);
	java_image_put(image, JAVA_IMAGE_OS_THREADS + 8, (uint64_t)owner, 4);
	java_image_put(image, JAVA_IMAGE_OS_THREADS + 64 + 8, (uint64_t)getpid(), 4);
	// Another thread has the owner's place by now.
	java_image_put(image, JAVA_IMAGE_OS_THREADS + 8, 1, 4);
	expect_wait(world, "monitor " CLASS, monitor, NULL, 0);
	java_image_put(image, JAVA_IMAGE_OS_THREADS + 8, (uint64_t)owner, 4);
}

// By the ways of the older or the newer layout.
static void check_owners(struct world *world, int owner)
{
	struct java_image *image = &world->image;
	const uint32_t monitor = JAVA_IMAGE_MONITOR, list = JAVA_IMAGE_OWNER + 96;
	static const char what[] = "monitor " CLASS;

	if (!image->is_new) {
		put_word(world, monitor, at(world, JAVA_IMAGE_STACK + 8)); // on its stack
		expect_wait(world, what, monitor, owner_name, owner);
		put_word(world, monitor, at(world, JAVA_IMAGE_STACK - 8));
		expect_wait(world, what, monitor, NULL, 0);
		return;
	}
	put_word(world, monitor, 1); // in the owner's list
	expect_wait(world, what, monitor, NULL, 0);
	put_word(world, list, 96 + 16);
	put_word(world, list + 8, at(world, JAVA_IMAGE_LOCK));
	expect_wait(world, what, monitor, owner_name, owner);
	put_word(world, list, 96 + 8); // not any more
	expect_wait(world, what, monitor, NULL, 0);
	put_word(world, list, UINT32_MAX);
	expect_wait(world, what, monitor, NULL, 0);
}

static void check_other_waits(struct world *world, int owner)
{
	struct java_image *image = &world->image;
	const uint32_t waiter = JAVA_IMAGE_WAITER;

	put_word(world, waiter + JAVA_IMAGE_PENDING, 0);
	expect_wait(world, "lock AbstractOwnableSynchronizer", JAVA_IMAGE_LOCK, owner_name, owner);
	java_image_put(image, JAVA_IMAGE_LOCK + 12, 0, 4); // nobody has it
	_cleanup_free_ char *parked = java_name_futex(&world->java, getpid(), 0);
	assert_string_equal(parked, "parked on AbstractOwnableSynchronizer");
	put_word(world, waiter + JAVA_IMAGE_WAITING, at(world, JAVA_IMAGE_MONITOR));
	_cleanup_free_ char *waits = java_name_futex(&world->java, getpid(), 0);
	assert_string_equal(waits, "notify of " CLASS);
	_cleanup_free_ char *name = java_name_thread(&world->java, owner);
	assert_string_equal(name, "the owner");
	assert_null(java_name_futex(&world->java, 1, 0));
}

static void *sleep_on(void *context)
{
	int *ends = context;
	const int tid = (int)syscall(SYS_gettid);
	char byte;

	assert_int_equal(write(ends[1], &tid, sizeof(tid)), sizeof(tid));
	(void)!read(ends[2], &byte, 1);
	return NULL;
}

static void test_locks(void **state)
{
	int ends[4], owner = 0;
	pthread_t thread;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(ends + 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, sleep_on, ends), 0);
	assert_int_equal(read(ends[0], &owner, sizeof(owner)), sizeof(owner));
	for (int is_new = 0; is_new < 2; is_new++) {
		struct world world;
		world_init(&world, is_new);
		java_image_put(&world.image, JAVA_IMAGE_OS_THREADS + 8, (uint64_t)owner, 4);
		java_image_put(&world.image, JAVA_IMAGE_OS_THREADS + 64 + 8, (uint64_t)getpid(), 4);
		check_monitor(&world, owner);
		check_owners(&world, owner);
		check_other_waits(&world, owner);
		world_deinit(&world);
	}
	close(ends[3]);
	pthread_join(thread, NULL);
	close(ends[0]);
	close(ends[1]);
	close(ends[2]);
}

static void test_lock_names(void **state)
{
	static const char *const names[][2] = {
	    {"java.util.concurrent.locks.ReentrantLock$NonfairSync", "ReentrantLock"},
	    {"java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject",
	     "ConditionObject"},
	    {"java.util.concurrent.Semaphore$FairSync", "Semaphore"},
	    {"java.util.concurrent.ForkJoinPool", "ForkJoinPool"},
	    {"org.example.Lock$Sync", "org.example.Lock$Sync"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(names); i++) {
		_cleanup_free_ char *name = java_name_lock(names[i][0]);
		assert_string_equal(name, names[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_layout),
	    cmocka_unit_test(test_damaged_layout),
	    cmocka_unit_test(test_far_fields),
	    cmocka_unit_test(test_blocks),
	    cmocka_unit_test(test_scopes),
	    cmocka_unit_test(test_methods),
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_stream),
	    cmocka_unit_test(test_compiled_frame),
	    cmocka_unit_test(test_pushed_words),
	    cmocka_unit_test(test_interpreted_frame),
	    cmocka_unit_test(test_stubs),
	    cmocka_unit_test(test_reused_code),
	    cmocka_unit_test(test_code_lost),
	    cmocka_unit_test(test_names_of_unloaded),
	    cmocka_unit_test(test_unloads),
	    cmocka_unit_test(test_interrupted),
	    cmocka_unit_test(test_locks),
	    cmocka_unit_test(test_lock_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

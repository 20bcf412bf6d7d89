// SPDX-License-Identifier: MIT
// HotSpot as it is in memory, with damage: tables, code, methods and frames are read from the
// fuzzer's own memory, in which they are built whole (unit/java_image.h) and then overwritten.
#include <sys/mman.h>
#include <unistd.h>

#include "address_space.h"
#include "arch.h"
#include "fuzz.h"
#include "java.h"
#include "java_image.h"
#include "java_unloads.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "resident.h"
#include "run_stats.h"
#include "runtimes.h"
#include "snapshot.h"
#include "unwind.h"

enum { MAX_FRAMES = 32, N_SAMPLES = 3, N_PLACES = 6 };

static struct java_image image;

static void damage(struct input *input)
{
	for (uint8_t n = input_u8(input) % 64; n > 0 && input->left > 0; n--) {
		const uint32_t at = input_u32(input);
		const uint32_t value = at >> 18 & 0x3fff;
		switch (at >> 16 & 3) {
		case 0:
			java_image_put(&image, at & 0xffff, value & 0xff, 1);
			break;
		case 1:
			java_image_put(&image, at & 0xfff8, java_image_address(&image, value << 2),
			               8);
			break;
		case 2:
			java_image_put(&image, at & 0xffff,
			               value & 1 ? UINT64_MAX >> (value >> 1 & 63) : value, 8);
			break;
		default:
			java_image_put(&image, at & 0xffff, input_u64(input), 8);
		}
	}
}

static uint64_t choose_pc(struct input *input)
{
	static const uint32_t places[N_PLACES] = {
	    JAVA_IMAGE_RETURN, JAVA_IMAGE_DEOPT,     JAVA_IMAGE_INTERPRETER,
	    JAVA_IMAGE_STUB,   JAVA_IMAGE_FRAMELESS, JAVA_IMAGE_CALL_STUB,
	};
	const uint8_t which = input_u8(input);

	return java_image_address(&image,
	                          places[which % N_PLACES] + (which & 0x80 ? which >> 4 & 7 : 0));
}

// Words of the stack that are addresses of code, and of the stack.
static void build_stack(struct input *input)
{
	for (uint32_t at = JAVA_IMAGE_STACK; at < JAVA_IMAGE_STACK + JAVA_IMAGE_STACK_BYTES;
	     at += 8) {
		const uint8_t what = input_u8(input);
		if (what == 0)
			continue;
		java_image_put(&image, at,
		               what & 1   ? choose_pc(input)
		               : what & 2 ? java_image_address(&image, at + what * 2u)
		               : what & 4 ? java_image_address(&image, JAVA_IMAGE_OUTER)
		                          : what,
		               8);
	}
}

// Goes on for as long as a step leads on, as the unwinder does.
static void walk(struct java *java, const struct snapshot *snapshot, struct profile *profile,
                 struct input *input)
{
	const struct arch *arch = ARCH_NATIVE;
	struct registers registers = {0};
	uint32_t locations[MAX_FRAMES];
	uint64_t sps[MAX_FRAMES];
	size_t n = 0;

	registers_set(&registers, arch->pc, choose_pc(input));
	registers_set(&registers, arch->sp,
	              java_image_address(&image, JAVA_IMAGE_STACK + input_u8(input) * 8u));
	registers_set(&registers, arch->fp, registers.value[arch->sp] + input_u8(input) * 8u);
	for (bool is_return = input_u8(input) & 1; n < MAX_FRAMES; is_return = true) {
		const uint64_t pc = registers.value[arch->pc], sp = registers.value[arch->sp];
		if (!java_claims(java, pc))
			break;
		sps[n] = sp;
		locations[n] = profile_intern_location(profile, 0, pc);
		n++;
		if (java_step(java, snapshot, n - 1, n == 1, is_return, &registers) !=
		    JAVA_STEP_DONE)
			break;
		expect(registers.value[arch->sp] > sp);
	}
	struct unwound stack = {.locations = locations, .sps = sps, .n = n};
	struct java_note note = {.unloaded = java_read_unloaded(java, getpid())};
	java_merge(java, getpid(), snapshot,
	           &(struct snapshot_note){(const uint8_t *)&note, sizeof(note)}, &stack);
	expect(stack.n <= MAX_FRAMES);
}

static void sample(struct java *java, struct profile *profile, struct input *input)
{
	const struct snapshot snapshot = {
	    .regions = {{.start = java_image_address(&image, JAVA_IMAGE_STACK),
	                 .size = JAVA_IMAGE_STACK_BYTES,
	                 .bytes = image.bytes + JAVA_IMAGE_STACK}},
	    .n_regions = 1,
	};

	for (int i = 0; i < N_SAMPLES; i++) {
		build_stack(input);
		walk(java, &snapshot, profile, input);
		damage(input);
	}
}

// Threads, locks and objects. This thread is both the owner and the waiter.
static void name_waits(struct java *java, struct input *input)
{
	java_image_put(&image, JAVA_IMAGE_OS_THREADS + 8, (uint64_t)getpid(), 4);
	java_image_put(&image, JAVA_IMAGE_OS_THREADS + 64 + 8, (uint64_t)getpid(), 4);
	for (int i = 0; i < N_SAMPLES; i++) {
		java->threads.next_ns = 0;
		free(java_name_futex(java, getpid(), 0));
		free(java_name_thread(java, getpid()));
		damage(input);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct modules modules = {0};
	struct profile profile = {0};
	struct run_stats stats = {0};
	struct resident resident;
	struct address_space space = {.pid = getpid(), .tid = getpid()};

	if (!image.bytes)
		image.bytes = mmap(NULL, JAVA_IMAGE_BYTES, PROT_READ | PROT_WRITE,
		                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	image.is_new = input_u8(&input) & 1;
	java_image_build(&image);
	resident_init(&resident, getpid());
	const struct runtimes_setup setup = {
	    .max_frames = MAX_FRAMES,
	    .space = &space,
	    .resident = &resident,
	    .profile = &profile,
	    .stats = &stats,
	};
	struct module *names = modules_add(&modules, MODULE_RUNTIME, "[java]", 0, 0, -1);
	struct java java = {
	    .setup = &setup,
	    .source = {.memory = {.resident = &resident, .tid = getpid()},
	               .find_variable = java_image_variable,
	               .find_string = java_image_string,
	               .context = &image},
	    .names_module = names->index,
	};
	java.code = (struct java_code){
	    .source = &java.source, .layout = &java.layout, .heaps = &java.heaps};
	java.methods = (struct java_methods){.layout = &java.layout, .names = names->frame_names};
	damage(&input);
	if (java_layout_read(&java.source, &java.layout) == JAVA_LAYOUT_KNOWN) {
		java_unloads_find(&java.source.memory, &java.layout, &java.unloads);
		java_objects_init(&java.objects, &java.layout);
		if (input_u8(&input) & 1)
			name_waits(&java, &input);
		else
			sample(&java, &profile, &input);
	}
	java_threads_deinit(&java.threads);
	java_replay_deinit(&java.replay);
	java_code_deinit(&java.code);
	java_methods_deinit(&java.methods);
	free(java.frames);
	free(java.locations);
	resident_deinit(&resident);
	profile_deinit(&profile);
	modules_deinit(&modules);
	return 0;
}

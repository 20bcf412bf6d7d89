// SPDX-License-Identifier: MIT
// unwind: hand-made stacks over code with hand-made rules; no process is looked at but for this
// program's own file.
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "address_space.h"
#include "arch.h"
#include "clock.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "rule_cache.h"
#include "snapshot.h"
#include "unit.h"
#include "unwind.h"

// DWARF's register numbers.
enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, RIP = 16 };

// Where the hand-made stacks lie, in a mapping of their own.
enum { STACK = 0x70000000, MAPPING_END = STACK + 4096, MAX_WORDS = 64, MAX_FRAMES = 40 };

// Each function is a call amid nops, which returns to its middle, with one rule for all of it.
#define FUNCTION(name, rules)                                                                      \
	".balign 32\n" #name ":\n" rules ".skip 14, 0x90\ncall *%rax\n.skip 16, 0x90\n"
#define WITH_CFI(name, rules)                                                                      \
	FUNCTION(name, ".cfi_startproc\n" rules)                                                   \
	".cfi_endproc\n.globl " #name "\n"                                                         \
	".hidden " #name "\n"

__asm__(".text\n"                                                                   //
        WITH_CFI(code_leaf, "")                                                     //
        WITH_CFI(code_frame, ".cfi_def_cfa_offset 32\n")                            //
        WITH_CFI(code_saves_rbp, ".cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n") //
        WITH_CFI(code_by_rbp, ".cfi_def_cfa %rbp, 16\n.cfi_offset %rbp, -16\n")     //
        WITH_CFI(code_by_rbx, ".cfi_def_cfa %rbx, 16\n")                            //
        WITH_CFI(code_by_rax, ".cfi_def_cfa %rax, 16\n")                            //
        WITH_CFI(code_root, ".cfi_undefined %rip\n")                                //
        WITH_CFI(code_stuck, ".cfi_def_cfa_offset 0\n.cfi_offset %rip, 0\n")        //
        WITH_CFI(code_pc_in_r12, ".cfi_register %rip, %r12\n")                      //
        WITH_CFI(code_popped_rbp, ".cfi_offset %rbp, -24\n")                        //
        WITH_CFI(code_popped, ".cfi_def_cfa_offset 0\n.cfi_register %rip, %r12\n")  //
        // CFA = *(rsp + 8), then pc at CFA - 8.
        WITH_CFI(code_expression, ".cfi_escape 0x0f, 3, 0x77, 8, 0x06\n") //
        // The trampoline of a C library without CFI for it.
        ".balign 32\n.globl code_trampoline\n.hidden code_trampoline\n"
        "code_trampoline:\n mov $15, %rax\n syscall\n"
        // glibc's clone3, without CFI behind the system call.
        ".balign 32\n.globl code_clone\n.hidden code_clone\n"
        "code_clone: .skip 14, 0x90\n syscall\n test %rax, %rax\n jl 1f\n jz 2f\n ret\n"
        "1: ud2\n 2: ud2\n"
        // Go's.
        ".balign 32\n.globl code_go_clone\n.hidden code_go_clone\n"
        "code_go_clone: .skip 14, 0x90\n syscall\n cmp $0, %rax\n je 1f\n"
        "mov %eax, 0x30(%rsp)\n ret\n 1: ud2\n"
        // Where stacks begin: in a thread of musl's, in a fiber of Boost's.
        ".balign 32\n.globl code_musl_thread\n.hidden code_musl_thread\n"
        "code_musl_thread: .skip 16, 0x90\n mov %eax, %edi\n xor %eax, %eax\n mov $60, %al\n"
        "syscall\n hlt\n"
        ".balign 32\n.globl code_boost_fiber\n.hidden code_boost_fiber\n"
        "code_boost_fiber: .skip 16, 0x90\n xor %rdi, %rdi\n call code_leaf\n hlt\n"
        ".balign 32\n.globl code_without_cfi\n.hidden code_without_cfi\n"
        "code_without_cfi: .skip 64, 0x90\n");

extern const char code_leaf[], code_frame[], code_saves_rbp[], code_by_rbp[], code_by_rbx[],
    code_by_rax[], code_root[], code_stuck[], code_pc_in_r12[], code_popped[], code_popped_rbp[],
    code_expression[], code_trampoline[], code_clone[], code_go_clone[], code_without_cfi[],
    code_musl_thread[], code_boost_fiber[];

// A pc in the middle of a function.
static uint64_t in(const char *code)
{
	return (uint64_t)(uintptr_t)code + 16;
}

// What one test works on: this program's address space, and a stack that it fills.
struct world {
	struct modules modules;
	struct address_space space;
	struct profile profile;
	struct rule_cache rules;
	struct unwinder unwinder;
	uint64_t words[MAX_WORDS];
	struct snapshot snapshot;
	struct unwound unwound;
};

static int set_up(void **state)
{
	struct world *world = memory_alloc_zeroed(1, sizeof(*world));

	assert_ptr_equal(mmap((void *)(uintptr_t)STACK, MAPPING_END - STACK, PROT_READ,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
	                 (void *)(uintptr_t)STACK);
	address_space_init(&world->space, &world->modules, getpid());
	address_space_update(&world->space, getpid(), clock_now_ns(), true);
	unwinder_init(&world->unwinder, &world->space, &world->profile, &world->rules, MAX_FRAMES);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	unwinder_deinit(&world->unwinder);
	rule_cache_deinit(&world->rules);
	profile_deinit(&world->profile);
	address_space_deinit(&world->space);
	modules_deinit(&world->modules);
	munmap((void *)(uintptr_t)STACK, MAPPING_END - STACK);
	free(world);
	return 0;
}

// The stack is `n` words from STACK on; SP is STACK.
static void set_stack(struct world *world, uint64_t pc, const uint64_t *words, size_t n)
{
	world->snapshot = (struct snapshot){.n_regions = 1};
	memcpy(world->words, words, n * sizeof(*words));
	world->snapshot.regions[0] = (struct snapshot_region){
	    .start = STACK,
	    .size = n * sizeof(*words),
	    .bytes = (const uint8_t *)world->words,
	};
	registers_set(&world->snapshot.registers, RSP, STACK);
	registers_set(&world->snapshot.registers, RIP, pc);
}

// The same stack, elsewhere.
static void move_stack(struct world *world, uint64_t sp)
{
	world->snapshot.regions[0].start = sp;
	registers_set(&world->snapshot.registers, RSP, sp);
}

#define SET_STACK(world, pc, ...)                                                                  \
	set_stack((world), (pc), (const uint64_t[]){__VA_ARGS__},                                  \
	          sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void set_register(struct world *world, unsigned int number, uint64_t value)
{
	registers_set(&world->snapshot.registers, number, value);
}

// Unwinds, and compares with `n` look-up addresses (a return address less one), leaf first.
static void check(struct world *world, enum stack_end end, const uint64_t *expected, size_t n)
{
	unwinder_unwind(&world->unwinder, &world->snapshot, &world->unwound);
	assert_int_equal(world->unwound.end, end);
	assert_int_equal(world->unwound.n, n);
	for (size_t i = 0; i < n; i++) {
		const struct code_address code = address_space_resolve(&world->space, expected[i]);
		const struct location *location =
		    &world->profile.locations[world->unwound.locations[i]];

		assert_int_equal(location->module, code.module->index);
		assert_int_equal(location->address, code.address);
	}
}

#define CHECK(world, end, ...)                                                                     \
	check((world), (end), (const uint64_t[]){__VA_ARGS__},                                     \
	      sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void test_root(void **state)
{
	struct world *world = *state;

	SET_STACK(world, in(code_root), 0);
	CHECK(world, STACK_COMPLETE, in(code_root));
	SET_STACK(world, in(code_leaf), in(code_frame), 1, 2, 3, in(code_root));
	CHECK(world, STACK_COMPLETE, in(code_leaf), in(code_frame)-1, in(code_root)-1);
	assert_int_equal(world->unwound.base, STACK + 40);
	assert_false(world->unwound.guessed);
	SET_STACK(world, in(code_leaf), in(code_musl_thread));
	CHECK(world, STACK_COMPLETE, in(code_leaf), in(code_musl_thread));
	SET_STACK(world, in(code_leaf), in(code_boost_fiber));
	CHECK(world, STACK_COMPLETE, in(code_leaf), in(code_boost_fiber));
}

// A return address of zero, or a frame pointer of zero where there are no rules, may be there by
// chance: it is the root at the top of a stack.
static void test_top_of_stack(void **state)
{
	struct world *world = *state;
	const uint64_t pc = in(code_without_cfi) + 16;

	SET_STACK(world, in(code_leaf), in(code_frame), 1, 2, 3, 0);
	CHECK(world, STACK_NO_RETURN, in(code_leaf), in(code_frame)-1);
	assert_int_equal(world->unwound.base, 0);
	move_stack(world, MAPPING_END - 40);
	CHECK(world, STACK_COMPLETE, in(code_leaf), in(code_frame)-1);
	assert_int_equal(world->unwound.base, MAPPING_END);
	move_stack(world, MAPPING_END - 512);
	CHECK(world, STACK_NO_RETURN, in(code_leaf), in(code_frame)-1);
	// Where the program was entered.
	world->space.start_stack = MAPPING_END - 512 + 40;
	CHECK(world, STACK_COMPLETE, in(code_leaf), in(code_frame)-1);
	world->space.start_stack = 0;

	SET_STACK(world, pc, 1, 2, 3);
	set_register(world, RBP, 0);
	CHECK(world, STACK_NO_RULE, pc);
	world->space.stale = false;
	move_stack(world, MAPPING_END - 24);
	CHECK(world, STACK_COMPLETE, pc);
	assert_false(world->space.stale);
	// A mapping that is not known may have come since.
	move_stack(world, MAPPING_END + 4096);
	CHECK(world, STACK_NO_RULE, pc);
	assert_true(world->space.stale);
}

// Entry code in C, whose rule takes the number of arguments for a return address.
static void test_passes_entry(void **state)
{
	struct world *world = *state;

	SET_STACK(world, in(code_leaf), in(code_frame), 1, 2, 3, 4711);
	world->space.start_stack = STACK + 32;
	CHECK(world, STACK_COMPLETE, in(code_leaf), in(code_frame)-1);
	world->space.start_stack = STACK + 40;
	CHECK(world, STACK_NO_RETURN, in(code_leaf), in(code_frame)-1);
}

// A pc at a function's first byte is looked up there in a leaf, but before it as a return address.
static void test_first_byte(void **state)
{
	struct world *world = *state;
	const uint64_t frame = in(code_frame)-16;

	SET_STACK(world, frame, 1, 2, 3, in(code_root));
	CHECK(world, STACK_COMPLETE, frame, in(code_root)-1);
	// frame - 1 is leaf's last byte.
	SET_STACK(world, in(code_leaf), frame, in(code_root));
	CHECK(world, STACK_COMPLETE, in(code_leaf), frame - 1, in(code_root)-1);
}

static void test_saved_registers(void **state)
{
	struct world *world = *state;

	// saves_rbp's caller has its CFA from the rbp that it saved.
	SET_STACK(world, in(code_saves_rbp), STACK + 32, in(code_by_rbp), 1, 2, 0, in(code_root));
	CHECK(world, STACK_COMPLETE, in(code_saves_rbp), in(code_by_rbp)-1, in(code_root)-1);
	// libdw 0.188 takes rbx for undefined; it is preserved.
	SET_STACK(world, in(code_leaf), in(code_by_rbx), 1, 2, in(code_root));
	set_register(world, RBX, STACK + 16);
	CHECK(world, STACK_COMPLETE, in(code_leaf), in(code_by_rbx)-1, in(code_root)-1);
	SET_STACK(world, in(code_pc_in_r12), 0, 0);
	set_register(world, R12, in(code_root));
	CHECK(world, STACK_COMPLETE, in(code_pc_in_r12), in(code_root)-1);
}

static void test_expression(void **state)
{
	struct world *world = *state;

	SET_STACK(world, in(code_expression), 1, STACK + 32, 2, in(code_root));
	CHECK(world, STACK_COMPLETE, in(code_expression), in(code_root)-1);
	SET_STACK(world, in(code_expression), 1);
	CHECK(world, STACK_UNREADABLE, in(code_expression));
}

static void test_unknown_register(void **state)
{
	struct world *world = *state;

	// As of a sleeping thread: SP and PC alone.
	SET_STACK(world, in(code_by_rbp), 1, 2, 3);
	CHECK(world, STACK_NEEDS_REGISTER, in(code_by_rbp));
	SET_STACK(world, in(code_leaf), in(code_by_rbp), 2, 3);
	CHECK(world, STACK_NEEDS_REGISTER, in(code_leaf), in(code_by_rbp)-1);
	SET_STACK(world, in(code_pc_in_r12), 1, 2, 3);
	CHECK(world, STACK_NEEDS_REGISTER, in(code_pc_in_r12));
	// A call need not preserve rax.
	SET_STACK(world, in(code_leaf), in(code_by_rax), 2, 3, in(code_root));
	set_register(world, 0, STACK + 16);
	CHECK(world, STACK_NEEDS_REGISTER, in(code_leaf), in(code_by_rax)-1);
	SET_STACK(world, in(code_by_rax), 1, 2, 3, in(code_root));
	set_register(world, 0, STACK + 16);
	CHECK(world, STACK_COMPLETE, in(code_by_rax), in(code_root)-1);
}

static void test_unreadable_and_cut(void **state)
{
	struct world *world = *state;

	SET_STACK(world, in(code_frame), 1, 2, 3);
	CHECK(world, STACK_UNREADABLE, in(code_frame));
	world->snapshot.cut = true;
	CHECK(world, STACK_NOT_COPIED, in(code_frame));
	// A saved register that cannot be read is unknown, and no more than that.
	SET_STACK(world, in(code_by_rbp), 1, 2, 3);
	set_register(world, RBP, 0x1000);
	CHECK(world, STACK_UNREADABLE, in(code_by_rbp));
	// A word that lies half behind the end is not there.
	SET_STACK(world, in(code_frame), 1, 2, 3, in(code_root));
	world->snapshot.regions[0].size -= 1;
	CHECK(world, STACK_UNREADABLE, in(code_frame));
	world->snapshot.n_regions = 0;
	CHECK(world, STACK_UNREADABLE, in(code_frame));
}

static void test_no_progress(void **state)
{
	struct world *world = *state;

	SET_STACK(world, in(code_stuck), in(code_stuck), 0);
	CHECK(world, STACK_NO_PROGRESS, in(code_stuck), in(code_stuck)-1);
	SET_STACK(world, in(code_by_rbp), 0, 0, 0, in(code_root));
	set_register(world, RBP, STACK - 24);
	world->snapshot.regions[0].start = STACK - 32;
	world->words[2] = in(code_root);
	CHECK(world, STACK_NO_PROGRESS, in(code_by_rbp));
}

static void test_too_deep(void **state)
{
	struct world *world = *state;
	uint64_t words[MAX_FRAMES + 1], expected[MAX_FRAMES];

	for (size_t i = 0; i < MAX_FRAMES; i++) {
		words[i] = in(code_leaf);
		expected[i] = in(code_leaf) - (i > 0);
	}
	words[MAX_FRAMES - 2] = in(code_root);
	set_stack(world, in(code_leaf), words, MAX_FRAMES);
	expected[MAX_FRAMES - 1] = in(code_root)-1;
	check(world, STACK_COMPLETE, expected, MAX_FRAMES);
	// One frame more than there is room for.
	words[MAX_FRAMES - 2] = in(code_leaf);
	words[MAX_FRAMES - 1] = in(code_root);
	set_stack(world, in(code_leaf), words, MAX_FRAMES);
	expected[MAX_FRAMES - 1] = in(code_leaf)-1;
	check(world, STACK_TOO_DEEP, expected, MAX_FRAMES);
}

static void test_signal_frame(void **state)
{
	// struct ucontext: flags, link, stack (3 words), then r8-r15, rdi, rsi, rbp, rbx, rdx, rax,
	// rcx, rsp, rip (17).
	enum { R8 = 5, RBP_AT = R8 + 10, RAX_AT = R8 + 13, RSP_AT = R8 + 15, RIP_AT = R8 + 16 };
	struct world *world = *state;
	const uint64_t trampoline = (uint64_t)(uintptr_t)code_trampoline;
	const uint64_t interrupted = in(code_by_rax)-16; // at its very first byte
	uint64_t words[40] = {0};

	words[0] = trampoline; // the handler's return address; struct ucontext begins at words[1]
	words[1 + RAX_AT] = STACK + 8 * 28;
	words[1 + RSP_AT] = STACK + 8 * 28;
	words[1 + RIP_AT] = interrupted;
	words[29] = in(code_root);
	set_stack(world, in(code_leaf), words, array_size(words));
	CHECK(world, STACK_COMPLETE, in(code_leaf), trampoline, interrupted, in(code_root)-1);

	// On an alternate stack: the interrupted one may lie below.
	words[1 + RSP_AT] = STACK - 0x1000;
	words[1 + RIP_AT] = in(code_leaf);
	set_stack(world, in(code_leaf), words, array_size(words));
	const uint64_t other[] = {in(code_root)};
	world->snapshot.regions[world->snapshot.n_regions++] = (struct snapshot_region){
	    .start = STACK - 0x1000,
	    .size = sizeof(other),
	    .bytes = (const uint8_t *)other,
	};
	CHECK(world, STACK_COMPLETE, in(code_leaf), trampoline, in(code_leaf), in(code_root)-1);

	// One that interrupted itself, for ever.
	words[1 + RSP_AT] = STACK;
	words[1 + RIP_AT] = in(code_leaf);
	set_stack(world, in(code_leaf), words, array_size(words));
	unwinder_unwind(&world->unwinder, &world->snapshot, &world->unwound);
	assert_true(world->unwound.end == STACK_TOO_DEEP ||
	            world->unwound.end == STACK_NO_PROGRESS);
}

static void test_frame_pointer(void **state)
{
	struct world *world = *state;
	const uint64_t pc = in(code_without_cfi) + 16;

	// Its caller has CFI, which knows rbp as saved by it.
	SET_STACK(world, pc, 1, STACK + 48, in(code_by_rbp), 2, 3, 4, 5, in(code_root));
	set_register(world, RBP, STACK + 8);
	world->words[6] = STACK + 64;
	CHECK(world, STACK_COMPLETE, pc, in(code_by_rbp)-1, in(code_root)-1);
	assert_true(world->unwound.guessed);
	// What it leads to is no code, or not behind a call.
	for (int i = 0; i < 2; i++) {
		SET_STACK(world, pc, 1, STACK + 48, i ? in(code_root) + 1 : 0x1234, 2, 3);
		set_register(world, RBP, STACK + 8);
		CHECK(world, STACK_NO_RULE, pc);
	}
	assert_false(world->unwound.guessed);
	// Not aligned; below SP; not in the copy; not known.
	set_register(world, RBP, STACK + 4);
	CHECK(world, STACK_NO_RULE, pc);
	set_register(world, RBP, STACK - 8);
	CHECK(world, STACK_NO_RULE, pc);
	set_register(world, RBP, 0x1000);
	CHECK(world, STACK_NO_RULE, pc);
	SET_STACK(world, pc, 1, 2, 3);
	CHECK(world, STACK_NEEDS_REGISTER, pc);
}

// Where a frame pointer leads is not in the copy: whether that is a frame is not known yet.
static void test_frame_pointer_beyond_the_copy(void **state)
{
	struct world *world = *state;
	const uint64_t pc = in(code_without_cfi) + 16;

	SET_STACK(world, pc, 1, STACK + 48, in(code_root), 3);
	world->snapshot.cut = true;
	set_register(world, RBP, STACK + 4095);
	CHECK(world, STACK_NO_RULE, pc);
	set_register(world, RBP, STACK + 4096);
	CHECK(world, STACK_NOT_COPIED, pc);
	set_register(world, RBP, STACK + 8);
	CHECK(world, STACK_COMPLETE, pc, in(code_root)-1);
	world->snapshot.regions[0].gaps = (struct resident_gaps){1, {1}, 1, 0, 12};
	CHECK(world, STACK_NOT_RESIDENT, pc);
}

// Behind clone's system call the parent returns, and the child has nobody to return to.
static void test_clone(void **state)
{
	struct world *world = *state;

	SET_STACK(world, in(code_clone), in(code_frame), 1, 2, 3, in(code_root));
	CHECK(world, STACK_NEEDS_REGISTER, in(code_clone));
	set_register(world, 0, 4711); // rax: the child's tid
	CHECK(world, STACK_COMPLETE, in(code_clone), in(code_frame)-1, in(code_root)-1);
	set_register(world, 0, (uint64_t)-38); // within the call, at a stop: -ENOSYS
	CHECK(world, STACK_COMPLETE, in(code_clone), in(code_frame)-1, in(code_root)-1);
	set_register(world, 0, 0);
	CHECK(world, STACK_COMPLETE, in(code_clone));
	SET_STACK(world, in(code_go_clone), in(code_frame), 1, 2, 3, in(code_root));
	set_register(world, 0, 0);
	CHECK(world, STACK_COMPLETE, in(code_go_clone));
	set_register(world, 0, 4711);
	CHECK(world, STACK_COMPLETE, in(code_go_clone), in(code_frame)-1, in(code_root)-1);
}

// An epilogue has popped rbp, which its CFI still describes as saved: in the red zone.
static void test_red_zone(void **state)
{
	struct world *world = *state;
	uint64_t words[] = {STACK + 32, 0, in(code_by_rbp), 2, 0, in(code_root)};

	set_stack(world, in(code_popped_rbp), words, array_size(words));
	set_register(world, RSP, STACK + 16);
	CHECK(world, STACK_COMPLETE, in(code_popped_rbp), in(code_by_rbp)-1, in(code_root)-1);
}

// A leaf that has its return address in a register, as vfork has.
static void test_popped_return_address(void **state)
{
	struct world *world = *state;

	SET_STACK(world, in(code_popped), in(code_root), in(code_root));
	set_register(world, R12, in(code_frame));
	CHECK(world, STACK_UNREADABLE, in(code_popped), in(code_frame)-1);
	SET_STACK(world, in(code_popped), 1, 2, 3, in(code_root));
	set_register(world, R12, in(code_frame));
	CHECK(world, STACK_COMPLETE, in(code_popped), in(code_frame)-1, in(code_root)-1);
	// Only a leaf may.
	SET_STACK(world, in(code_popped), 1, 2, 3, in(code_root));
	set_register(world, R12, in(code_popped));
	CHECK(world, STACK_NO_PROGRESS, in(code_popped), in(code_popped)-1);
}

static void test_entry_code(void **state)
{
	struct world *world = *state;
	const uint64_t pc = in(code_without_cfi) + 16;

	SET_STACK(world, pc, 1, 2, 3);
	world->space.start_stack = STACK + 16;
	CHECK(world, STACK_COMPLETE, pc);
	world->space.start_stack = STACK + 4096;
	CHECK(world, STACK_NEEDS_REGISTER, pc);
}

static void test_no_code(void **state)
{
	struct world *world = *state;

	SET_STACK(world, 0, in(code_root));
	CHECK(world, STACK_NO_RULE, 0);
	SET_STACK(world, in(code_leaf), 0x1234);
	CHECK(world, STACK_NO_RETURN, in(code_leaf));
	assert_true(world->space.stale);
	SET_STACK(world, in(code_leaf), UINT64_MAX);
	CHECK(world, STACK_NO_RETURN, in(code_leaf));
}

// By way of a thread that has just ended no file is found; it is looked for again, later and later,
// and what was made without it does not stay.
static void test_file_that_was_gone(void **state)
{
	struct world *world = *state;
	const uint64_t in_libc = (uint64_t)(uintptr_t)getpid;
	const int64_t now_ns = world->space.updated_ns;
	const int ended = fork();

	if (ended == 0)
		_exit(0);
	assert_int_equal(waitpid(ended, NULL, 0), ended);
	SET_STACK(world, in_libc, in(code_root));
	world->space.tid = world->space.pid = ended;
	unwinder_unwind(&world->unwinder, &world->snapshot, &world->unwound);
	assert_int_not_equal(world->unwound.end, STACK_COMPLETE);
	const struct module *gone = address_space_resolve(&world->space, in_libc).module;
	assert_non_null(gone->unreadable);
	address_space_update(&world->space, getpid(), now_ns, false);
	assert_ptr_equal(address_space_resolve(&world->space, in_libc).module, gone);
	const int64_t next_ns = world->space.look_again_ns;
	assert_in_range(next_ns, now_ns + 1, now_ns + NS_PER_SECOND);
	// Once more in vain, as after a reading of the maps.
	memset(world->space.owners, 0, world->space.maps.count * sizeof(*world->space.owners));
	world->space.updated_ns = next_ns;
	world->space.tid = ended;
	assert_ptr_equal(address_space_resolve(&world->space, in_libc).module, gone);
	assert_true(gone->look_again_ns == next_ns + 2 * (next_ns - now_ns));

	world->space.pid = getpid();
	address_space_update(&world->space, getpid(), gone->look_again_ns, false);
	CHECK(world, STACK_COMPLETE, in_libc, in(code_root)-1);
	const struct module *found = address_space_resolve(&world->space, in_libc).module;
	assert_ptr_not_equal(found, gone);
	assert_null(found->unreadable);
	assert_string_equal(found->path, gone->path);
	assert_true(world->space.look_again_ns == INT64_MAX);
}

// Whatever stands on the stack: it ends, and within bounds.
static void test_noise(void **state)
{
	const char *const codes[] = {code_leaf,       code_frame,      code_saves_rbp,
	                             code_by_rbp,     code_by_rbx,     code_stuck,
	                             code_expression, code_trampoline, code_without_cfi};
	struct world *world = *state;
	uint64_t random = 1, words[MAX_WORDS];

	for (int round = 0; round < 20000; round++) {
		for (size_t i = 0; i < MAX_WORDS; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			const unsigned int pick = random >> 40;
			words[i] = pick % 4 == 0 ? random
			           : pick % 4 == 1
			               ? STACK + pick % (8 * MAX_WORDS)
			               : in(codes[pick % array_size(codes)]) - 16 * (pick % 8 == 2);
		}
		set_stack(world, in(codes[round % (int)array_size(codes)]), words, MAX_WORDS);
		set_register(world, RBP, words[5]);
		set_register(world, RBX, words[6]);
		unwinder_unwind(&world->unwinder, &world->snapshot, &world->unwound);
		assert_in_range(world->unwound.n, 1, MAX_FRAMES);
		assert_true(world->unwound.end < N_STACK_ENDS);
	}
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(test_root),
	    TEST(test_top_of_stack),
	    TEST(test_passes_entry),
	    TEST(test_first_byte),
	    TEST(test_saved_registers),
	    TEST(test_expression),
	    TEST(test_unknown_register),
	    TEST(test_unreadable_and_cut),
	    TEST(test_no_progress),
	    TEST(test_too_deep),
	    TEST(test_signal_frame),
	    TEST(test_clone),
	    TEST(test_red_zone),
	    TEST(test_popped_return_address),
	    TEST(test_frame_pointer),
	    TEST(test_frame_pointer_beyond_the_copy),
	    TEST(test_entry_code),
	    TEST(test_no_code),
	    TEST(test_file_that_was_gone),
	    TEST(test_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// exception_frame: hand-made stacks on which libgcc's unwinder is about to enter a handler.
#include "arch.h"
#include "exception_frame.h"
#include "memory.h"
#include "snapshot.h"
#include "unit.h"

enum {
	WORD = 8,
	STACK_WORDS = 128,
	OWN = 2,            // where the unwinder's context of its own frame begins, in words
	HANDLER = 26,       // and that of the handler's frame
	OWN_CFA = 64,       // the unwinder's frame ends there
	HANDLER_CFA = 100,  // and the handler's call did
	OWN_FP_AT = 60,     // where the unwinder has saved its caller's frame pointer
	HANDLER_FP_AT = 90, // and who called on from the handler's frame that one's
};

enum { START = 0x7000000, CALLER = 0x401000, LANDING = 0x402000, BEHIND_CALL = 0x402100 };

struct frames {
	uint64_t words[STACK_WORDS];
	struct snapshot snapshot;
};

static uint64_t address_of(unsigned int word)
{
	return START + (uint64_t)word * WORD;
}

// The fields of a struct _Unwind_Context that count (libgcc's unwind-dw2.c).
static void put_context(struct frames *stack, unsigned int at, unsigned int cfa, unsigned int fp_at,
                        uint64_t ra)
{
	const struct arch *arch = ARCH_NATIVE;
	const unsigned int n = arch->unwinder_registers;

	stack->words[at + arch->fp] = address_of(fp_at);
	stack->words[at + arch->pc] = address_of(cfa - 1);
	stack->words[at + n] = address_of(cfa);
	stack->words[at + n + 1] = ra;
}

static void make(struct frames *stack)
{
	*stack = (struct frames){0};
	put_context(stack, OWN, OWN_CFA, OWN_FP_AT, CALLER);
	put_context(stack, HANDLER, HANDLER_CFA, HANDLER_FP_AT, LANDING);
	stack->words[OWN_CFA - 1] = CALLER;
	stack->words[HANDLER_CFA - 1] = BEHIND_CALL;
	stack->words[OWN_FP_AT] = address_of(110);
	stack->words[HANDLER_FP_AT] = address_of(120);
	stack->snapshot.regions[0] = (struct snapshot_region){
	    .start = START,
	    .size = sizeof(stack->words),
	    .bytes = (const uint8_t *)stack->words,
	};
	stack->snapshot.n_regions = 1;
}

static bool find(struct frames *stack, struct exception_frame_handler *ret)
{
	struct registers registers = {0};

	registers_set(&registers, ARCH_NATIVE->sp, START);
	return exception_frame_find_handler(&stack->snapshot, &registers, address_of(OWN_CFA),
	                                    stack->words[OWN_CFA - 1], ret);
}

static void test_nothing_is_put_yet(void **state)
{
	struct exception_frame_handler handler;
	struct frames stack;

	(void)state;
	make(&stack);
	assert_false(find(&stack, &handler));
}

static void test_frame_pointer_is_put(void **state)
{
	struct exception_frame_handler handler;
	struct frames stack;

	(void)state;
	make(&stack);
	stack.words[OWN_FP_AT] = stack.words[HANDLER_FP_AT];
	assert_true(find(&stack, &handler));
	assert_true(handler.is_part);
	assert_int_equal(handler.sp, address_of(HANDLER_CFA));
	assert_int_equal(handler.pc, BEHIND_CALL);
	// Both are where no frame between has saved it: equal from the start.
	put_context(&stack, HANDLER, HANDLER_CFA, OWN_FP_AT, LANDING);
	assert_false(find(&stack, &handler));
}

static void test_return_address_is_put(void **state)
{
	struct exception_frame_handler handler;
	struct frames stack;

	(void)state;
	make(&stack);
	stack.words[OWN_FP_AT] = stack.words[HANDLER_FP_AT];
	stack.words[OWN_CFA - 1] = stack.words[HANDLER_CFA - 1] = LANDING;
	assert_true(find(&stack, &handler));
	assert_false(handler.is_part);
	assert_int_equal(handler.sp, address_of(HANDLER_CFA));
	assert_int_equal(handler.pc, LANDING);
	// Another address in its place is somebody else's doing.
	stack.words[OWN_CFA - 1] = 0x500000;
	stack.words[HANDLER_CFA - 1] = BEHIND_CALL;
	assert_false(find(&stack, &handler));
}

// The handler is just behind its call: only who needs the frame pointer that was replaced can tell.
static void test_handler_behind_its_call(void **state)
{
	struct exception_frame_handler handler;
	struct registers registers = {0};
	struct frames stack;

	(void)state;
	make(&stack);
	put_context(&stack, HANDLER, HANDLER_CFA, HANDLER_FP_AT, BEHIND_CALL);
	stack.words[HANDLER_FP_AT] = 1; // no address
	registers_set(&registers, ARCH_NATIVE->sp, address_of(OWN_CFA));
	registers_set(&registers, ARCH_NATIVE->pc, CALLER);
	assert_false(exception_frame_find_handler_of_callee(&stack.snapshot, &registers, &handler));
	stack.words[OWN_FP_AT] = stack.words[HANDLER_FP_AT];
	assert_false(find(&stack, &handler));
	assert_true(exception_frame_find_handler_of_callee(&stack.snapshot, &registers, &handler));
	assert_int_equal(handler.sp, address_of(HANDLER_CFA));
	assert_int_equal(handler.pc, BEHIND_CALL);
	// Another frame's contexts.
	registers_set(&registers, ARCH_NATIVE->pc, LANDING);
	assert_false(exception_frame_find_handler_of_callee(&stack.snapshot, &registers, &handler));
}

// Without the handler's context, and with a frame that is too large to be searched.
static void test_no_unwinder(void **state)
{
	struct exception_frame_handler handler;
	struct registers registers = {0};
	struct frames stack;

	(void)state;
	make(&stack);
	put_context(&stack, HANDLER, 0, 0, 0);
	stack.words[OWN_FP_AT] = stack.words[HANDLER_FP_AT];
	assert_false(find(&stack, &handler));
	make(&stack);
	registers_set(&registers, ARCH_NATIVE->sp, START - 4096);
	assert_false(exception_frame_find_handler(&stack.snapshot, &registers, address_of(OWN_CFA),
	                                          LANDING, &handler));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_nothing_is_put_yet),
	    cmocka_unit_test(test_frame_pointer_is_put),
	    cmocka_unit_test(test_return_address_is_put),
	    cmocka_unit_test(test_handler_behind_its_call),
	    cmocka_unit_test(test_no_unwinder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

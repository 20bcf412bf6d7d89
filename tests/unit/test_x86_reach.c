// SPDX-License-Identifier: MIT
// x86_code, and padding: whether code may be a part of the function that begins elsewhere.
#include <string.h>

#include "arch.h"
#include "memory.h"
#include "unit.h"
#include "x86_code.h"

enum { BASE = 0x1000, BEHIND = 0x1200 };

struct code {
	const uint8_t *bytes;
	size_t size;
	uint64_t end; // a call that ends there is the last of its function; 0: none is
};

// Behind the code there are functions that return at once.
static size_t read_code(void *context, uint64_t address, void *buffer, size_t size)
{
	const struct code *code = context;
	uint8_t *bytes = buffer;

	for (size_t i = 0; i < size; i++) {
		const uint64_t at = address + i - BASE;
		bytes[i] = at < code->size ? code->bytes[at] : 0xc3;
	}
	return size;
}

static bool is_together(void *context, uint64_t a, uint64_t b)
{
	(void)a;
	return b != ((const struct code *)context)->end;
}

static bool may_lead(struct code *code, uint64_t address, bool is_other)
{
	const struct arch_code arch_code = {
	    .read = read_code,
	    .is_together = is_together,
	    .context = code,
	};

	return x86_code_may_lead_to(&arch_code, BASE, address, is_other);
}

#define CODE(text) (const uint8_t *)(text), sizeof(text) - 1

static void test_may_lead_to(void **state)
{
	const struct {
		struct code code;
		uint64_t last;   // the last instruction that is the function's
		bool to_unknown; // it may lead to one behind that is not known to be another's,
		bool to_another; // and to one that is
	} cases[] = {
	    // push %rbp; mov %rsp, %rbp; pop %rbp; ret
	    {{CODE("\x55\x48\x89\xe5\x5d\xc3"), 0}, BASE + 5, false, false},
	    // test %eax, %eax; je; nop; ret; the je's: nop; ret
	    {{CODE("\x85\xc0\x74\x02\x90\xc3\x90\xc3"), 0}, BASE + 7, false, false},
	    // jmp BEHIND
	    {{CODE("\xe9\xfb\x01\x00\x00"), 0}, BASE, true, true},
	    // cmp; ja to the ret; jmp *0x0(,%rax,8); nop; ret
	    {{CODE("\x3c\x05\x77\x08\xff\x24\xc5\x00\x00\x00\x00\x90\xc3"), 0},
	     BASE + 12,
	     false,
	     true},
	    // jmp *%rax
	    {{CODE("\xff\xe0"), 0}, BASE, false, true},
	    // jmp *0x100(%rip): of the procedure linkage table
	    {{CODE("\xff\x25\x00\x01\x00\x00"), 0}, BASE, true, true},
	    // mov 0x18(%rbx), %rsp; int $0x80; lea (%rsp,%rax), %rsp; ret
	    {{CODE("\x48\x8b\x63\x18\xcd\x80\x48\x8d\x24\x04\xc3"), 0}, BASE + 10, false, false},
	    // ud2; and int3, hlt
	    {{CODE("\x0f\x0b"), 0}, BASE, false, false},
	    {{CODE("\xcc"), 0}, BASE, false, false},
	    {{CODE("\xf4"), 0}, BASE, false, false},
	    // lret
	    {{CODE("\xcb"), 0}, BASE, true, true},
	    // no instruction
	    {{CODE("\x06"), 0}, BASE, true, true},
	    // call, which returns; jmp BEHIND
	    {{CODE("\xe8\x00\x00\x00\x00\xe9\xf6\x01\x00\x00"), 0}, BASE + 5, true, true},
	    // call, which does not
	    {{CODE("\xe8\x00\x00\x00\x00\xe9\xf6\x01\x00\x00"), BASE + 5}, BASE, false, false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		struct code code = cases[i].code;
		if (code.bytes[0] != 0x06)
			assert_true(may_lead(&code, cases[i].last, false));
		assert_int_equal(may_lead(&code, BEHIND, false), cases[i].to_unknown);
		assert_int_equal(may_lead(&code, BEHIND, true), cases[i].to_another);
	}
}

// A call that may be the last leaves what lies between it and what was seen.
static void test_may_go_on(void **state)
{
	// test; je to the ret; call; nop; nop; ret
	struct code code = {CODE("\x85\xc0\x74\x07\xe8\x00\x00\x00\x00\x90\x90\xc3"), BASE + 9};

	(void)state;
	assert_true(may_lead(&code, BASE + 10, false));
	assert_false(may_lead(&code, BASE + 10, true));
	assert_false(may_lead(&code, BEHIND, false));
}

static void test_padding(void **state)
{
	(void)state;
	assert_true(ARCH_NATIVE->is_padding(CODE("\x90")));
	assert_true(ARCH_NATIVE->is_padding(CODE("\xcc\xcc\xcc")));
	assert_true(ARCH_NATIVE->is_padding(CODE("\x66\x90\x0f\x1f\x44\x00\x00")));
	assert_true(ARCH_NATIVE->is_padding(CODE("\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00")));
	assert_false(ARCH_NATIVE->is_padding(CODE("\x90\xc3")));
	assert_false(ARCH_NATIVE->is_padding(CODE("\x0f\x1f"))); // cut
	// nop; jmp to the nop, in both lengths; jne; and to what is behind it
	assert_true(ARCH_NATIVE->jumps_back(CODE("\x90\xeb\xfd")));
	assert_true(ARCH_NATIVE->jumps_back(CODE("\x90\xe9\xfa\xff\xff\xff")));
	assert_true(ARCH_NATIVE->jumps_back(CODE("\x90\x75\xfd")));
	assert_true(ARCH_NATIVE->jumps_back(CODE("\x90\x0f\x85\xf9\xff\xff\xff")));
	assert_false(ARCH_NATIVE->jumps_back(CODE("\x90\x75\xfe")));
	assert_false(ARCH_NATIVE->jumps_back(CODE("\x90\xe8\xfa\xff\xff\xff"))); // call
	assert_false(ARCH_NATIVE->jumps_back(CODE("\x90\x06\xeb\xfc"))); // behind no instruction
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_may_lead_to),
	    cmocka_unit_test(test_may_go_on),
	    cmocka_unit_test(test_padding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

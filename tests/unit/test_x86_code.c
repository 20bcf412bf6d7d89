// SPDX-License-Identifier: MIT
// x86_code: where code says that its return address lies, against its unwinding tables, at each
// instruction of libc and of other programs; and instructions of known length.
//
//     test_x86_code FILE...
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dlfcn.h>

#include "beam_code.h"
#include "cfi.h"
#include "luajit_code.h"
#include "expression.h"
#include "function_range.h"
#include "memory.h"
#include "module.h"
#include "returned_variable.h"
#include "rule.h"
#include "symbol_table.h"
#include "unit.h"
#include "x86_code.h"
#include "x86_instruction.h"

enum { MAX_SHOWN = 8, STEP = 11 };

static char **files;
static int n_files;

struct counts {
	struct module *module;
	uint64_t start; // of the function that is looked at
	size_t n_rules, n_wrong, n_without;
};

static size_t read_code(void *context, uint64_t address, void *buffer, size_t size)
{
	return module_read_code(((struct counts *)context)->module, address, buffer, size);
}

static bool is_together(void *context, uint64_t a, uint64_t b)
{
	const struct symbol_table *symbols = module_symbols(((struct counts *)context)->module);

	return symbol_table_find(symbols, a) == symbol_table_find(symbols, b);
}

static uint64_t find_start(void *context, unsigned int n)
{
	return n == 0 ? ((struct counts *)context)->start : 0;
}

// Is it a plain row, by the same register as ours?
static bool is_comparable(const struct rule *theirs, const struct rule *ours)
{
	return theirs->kind == RULE_ROW && !theirs->signal_frame && !theirs->cfa_expression &&
	       !ours->cfa_expression && theirs->cfa_register == ours->cfa_register;
}

static void compare_at(struct counts *counts, uint64_t at)
{
	const struct arch_code code = {.read = read_code,
	                               .is_together = is_together,
	                               .find_start = find_start,
	                               .context = counts};
	struct rule theirs = {0}, ours = {0};

	counts->start = function_range_find(counts->module, at).function;
	if (!cfi_find_rule(counts->module, at, &theirs))
		return;
	if (!x86_code_rule(&code, at, false, &ours)) {
		counts->n_without++;
	} else if (is_comparable(&theirs, &ours)) {
		counts->n_rules++;
		if (theirs.cfa_offset != ours.cfa_offset && counts->n_wrong++ < MAX_SHOWN)
			print_message("# %s %#jx: CFA at %jd, not %jd\n",
			              module_name(counts->module), (uintmax_t)at,
			              (intmax_t)ours.cfa_offset, (intmax_t)theirs.cfa_offset);
	}
	rule_deinit(&theirs);
	rule_deinit(&ours);
}

// The functions one after the other: what lies between symbols is decoded anew at each.
static void compare_file(void *context)
{
	struct counts *counts = context;
	const struct symbol_table *symbols = module_symbols(counts->module);
	uint64_t start;
	size_t size, n = 0;

	if (!module_find_section(counts->module, ".text", &start))
		return;
	const uint8_t *code = module_data(counts->module, start, &size);
	const char *name = NULL;
	for (size_t at = 0; code && at < size;) {
		struct instruction i;
		const char *here = symbol_table_find(symbols, start + at);
		if (!here || !x86_instruction_decode(code + at, size - at, &i)) {
			at++; // on to the next function
			continue;
		}
		// What only fills up, behind a ret or a jump, is never executed.
		const bool is_nop =
		    (i.map == MAP_ONE && i.opcode == 0x90) || (i.map == MAP_0F && i.opcode == 0x1f);
		if (!is_nop && (here != name || n++ % STEP == 0))
			compare_at(counts, start + at);
		name = here;
		at += i.length;
	}
}

static void test_against_tables(void **state)
{
	(void)state;
	for (int i = 0; i < n_files; i++) {
		struct modules modules = {0};
		const int fd = open(files[i], O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		struct counts counts = {.module =
		                            modules_add(&modules, MODULE_FILE, files[i], 1, 1, fd)};
		assert_true(module_guard(counts.module, compare_file, &counts, MODULE_FOR_NAMES));
		print_message("# %s: %zu compared, %zu wrong; %zu without\n", files[i],
		              counts.n_rules, counts.n_wrong, counts.n_without);
		assert_true(counts.n_rules > 5);
		// Behind calls that never return, where no symbol says that another function
		// begins, it may be wrong: the unwinder looks at what it finds.
		assert_true(counts.n_wrong * 300 <= counts.n_rules);
		modules_deinit(&modules);
	}
}

static void test_lengths(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
	} known[] = {
	    {"\xc3", 1},
	    {"\xf3\xc3", 2},
	    {"\xf3\x0f\x1e\xfa", 4},                          // endbr64
	    {"\x48\x83\xec\x28", 4},                          // sub $40, %rsp
	    {"\x48\x8b\x84\x24\x00\x01\x00\x00", 8},          // mov 256(%rsp), %rax
	    {"\x48\x8b\x05\x00\x00\x00\x00", 7},              // mov x(%rip), %rax
	    {"\x8b\x04\x25\x00\x00\x00\x00", 7},              // mov x, %eax
	    {"\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08", 10}, // movabs
	    {"\x66\xb8\x01\x02", 4},                          // mov $x, %ax
	    {"\xf6\xc1\x01", 3},                              // test $1, %cl
	    {"\xf7\xd8", 2},                                  // neg %eax
	    {"\x0f\x84\x00\x00\x00\x00", 6},                  // je
	    {"\x66\x0f\x3a\x0f\xc1\x08", 6},                  // palignr $8
	    {"\xc5\xf8\x77", 3},                              // vzeroupper
	    {"\xc5\xfd\x70\xc1\x4e", 5},                      // vpshufd $x
	    {"\xc4\xe3\x7d\x39\xc1\x01", 6},                  // vextracti128 $1
	    {"\xc4\xe2\x7d\x18\x05\x00\x00\x00\x00", 9},      // vbroadcastss x(%rip)
	    {"\x62\xf1\x7c\x48\x10\x44\x24\x01", 8},          // vmovups 64(%rsp), %zmm0
	    {"\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", 10}, // nopw
	    {"\xc8\x01\x00\x00", 4},                          // enter
	    {"\xdd\x04\x24", 3},                              // fldl (%rsp)
	};
	struct instruction i;

	(void)state;
	for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
		for (size_t size = 0; size < known[k].length; size++)
			assert_false(
			    x86_instruction_decode((const uint8_t *)known[k].bytes, size, &i));
		assert_true(
		    x86_instruction_decode((const uint8_t *)known[k].bytes, known[k].length, &i));
		assert_int_equal(i.length, known[k].length);
	}
}

static size_t read_bytes(void *context, uint64_t address, void *buffer, size_t size)
{
	enum { AT = 0x1000 };
	const uint8_t *bytes = context;

	memset(buffer, 0x90, size);
	for (size_t i = 0; i < size; i++)
		if (address + i >= AT && address + i < AT + 10)
			((uint8_t *)buffer)[i] = bytes[address + i - AT];
	return size;
}

// Where LuaJIT's VM takes its frame, its table's row is that of the frame already.
static void test_luajit_entry(void **state)
{
	uint8_t entry[] = {0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, 0x28};
	static const struct {
		uint64_t at;
		int64_t cfa;
		uint8_t n_registers;
	} known[] = {{0, 8, 1}, {1, 16, 2}, {2, 24, 3}, {4, 32, 4}, {6, 40, 5}};
	const struct arch_code code = {.read = read_bytes, .context = entry};
	const struct rule row = {
	    .kind = RULE_ROW,
	    .cfa_register = 7,
	    .cfa_offset = 80,
	    .n_registers = 5,
	    .registers = {{.number = 16, .kind = REGISTER_AT_CFA, .offset = -8},
	                  {.number = 6, .kind = REGISTER_AT_CFA, .offset = -16},
	                  {.number = 3, .kind = REGISTER_AT_CFA, .offset = -24},
	                  {.number = 15, .kind = REGISTER_AT_CFA, .offset = -32},
	                  {.number = 14, .kind = REGISTER_AT_CFA, .offset = -40}},
	};
	struct rule rule;

	(void)state;
	for (size_t i = 0; i < array_size(known); i++) {
		assert_true(luajit_code_refine(&code, 0x1000 + known[i].at, &row, &rule));
		assert_int_equal(rule.cfa_offset, known[i].cfa);
		assert_int_equal(rule.n_registers, known[i].n_registers);
	}
	assert_false(luajit_code_refine(&code, 0x1000 + 10, &row, &rule));
	assert_false(luajit_code_refine(&code, 0x1000 + 3, &row, &rule));
}

static bool is_one_function(void *context, uint64_t a, uint64_t b)
{
	(void)context;
	return a >= 0x1000 && b >= 0x1000;
}

static uint64_t find_first(void *context, unsigned int n)
{
	(void)context;
	return n == 0 ? 0x1000 : 0;
}

static uint64_t find_no_start(void *context, unsigned int n)
{
	(void)context;
	(void)n;
	return 0;
}

// Code that returns by a jump through a register: the way in knows what the register holds, the way
// out what would have to be the same.
static void test_return_by_jump(void **state)
{
	uint8_t pops[] = {0x41, 0x58,                    // pop %r8
	                  0x53,                          // push %rbx
	                  0x31, 0xdb,                    // xor %ebx, %ebx
	                  0x5b,                          // pop %rbx
	                  0x90, 0x41, 0xff, 0xe0};       // nop; jmp *%r8
	uint8_t moves[] = {0x4c, 0x8b, 0x44, 0x24, 0x08, // mov 8(%rsp), %r8
	                   0x58, 0x59,                   // pop %rax; pop %rcx
	                   0x41, 0xff, 0xe0};
	uint8_t others[] = {0x4c, 0x8b, 0x04, 0x24, 0x90, // mov (%rsp), %r8
	                    0x58, 0x59, 0x41, 0xff, 0xe0};
	static const uint8_t R8 = 8;
	const struct {
		uint8_t *bytes;
		uint64_t at;
		bool has_start;
		bool is_found, is_jump;
		int64_t cfa;
		uint8_t kind; // of the return address
	} known[] = {
	    {pops, 0, true, true, false, 8, REGISTER_AT_CFA},
	    {pops, 2, true, true, false, 0, REGISTER_COPY},
	    {pops, 3, true, true, false, 8, REGISTER_COPY},
	    {pops, 5, true, true, false, 8, REGISTER_COPY},
	    {pops, 6, true, true, false, 0, REGISTER_COPY},
	    {pops, 0, false, true, false, 8, REGISTER_AT_CFA},
	    {pops, 2, false, true, true, 0, REGISTER_AT_CFA},
	    {pops, 6, false, true, true, 0, REGISTER_AT_CFA},
	    {moves, 0, false, true, false, 16, REGISTER_AT_CFA},
	    {moves, 5, false, true, true, 16, REGISTER_AT_CFA},
	    {moves, 7, false, true, true, 0, REGISTER_AT_CFA},
	    {others, 0, false, false, false, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(known); i++) {
		const struct arch_code code = {
		    .read = read_bytes,
		    .is_together = is_one_function,
		    .find_start = known[i].has_start ? find_first : find_no_start,
		    .context = known[i].bytes,
		};
		struct rule rule = {0};

		assert_int_equal(x86_code_rule(&code, 0x1000 + known[i].at, false, &rule),
		                 known[i].is_found);
		if (!known[i].is_found)
			continue;
		const struct register_rule *pc = &rule.registers[rule.n_registers - 1];
		assert_int_equal(rule.cfa_register, 7);
		assert_int_equal(rule.cfa_offset, known[i].cfa);
		assert_int_equal(rule.is_jump, known[i].is_jump);
		assert_true(!rule.is_jump || rule.jump == R8);
		assert_int_equal(pc->number, 16);
		assert_int_equal(pc->kind, known[i].kind);
		assert_int_equal(pc->offset, pc->kind == REGISTER_COPY ? R8 : -8);
	}
}

// Of BEAM: process_main, its last part, and where a process's first function returns to.
static const char beam_main[] = "\x48\x81\xec\x10\x41\x00\x00" // sub $0x4110, %rsp
                                "\x48\x83\xe4\xc0",            // and $-64, %rsp
    beam_schedule[] = "\x48\x8d\x63\x80"                       // lea -0x80(%rbx), %rsp
                      "\xeb\xf0",                              // jmp
    beam_exit[] = "\x48\x8d\x63\x80"                           // lea -0x80(%rbx), %rsp
                  "\xff\x15\x00\x00\x00\x00"                   // call
                  "\x49\x8b\x65\x58"                           // mov 0x58(%r13), %rsp
                  "\xe9\xee\xfe\xff\xff";                      // jmp to the last part
enum { MAIN_AT = 0x1800, SCHEDULE_AT = 0x1900, EXIT_AT = 0x19ff, BEAM_END = 0x2000 };

static size_t read_beam(void *context, uint64_t address, void *buffer, size_t size)
{
	static uint8_t bytes[BEAM_END];

	(void)context;
	memset(bytes, 0x90, sizeof(bytes));
	memcpy(bytes + MAIN_AT, beam_main, sizeof(beam_main) - 1);
	memcpy(bytes + SCHEDULE_AT, beam_schedule, sizeof(beam_schedule) - 1);
	memcpy(bytes + EXIT_AT, beam_exit, sizeof(beam_exit) - 1);
	if (address >= BEAM_END)
		return 0;
	size = size < BEAM_END - address ? size : BEAM_END - address;
	memcpy(buffer, bytes + address, size);
	return size;
}

static void test_beam_layout(void **state)
{
	const struct arch_code code = {.read = read_beam};
	struct beam_layout layout;

	(void)state;
	assert_true(beam_code_read(&code, EXIT_AT, &layout));
	assert_int_equal(layout.main, MAIN_AT);
	assert_int_equal(layout.main_end, SCHEDULE_AT + sizeof(beam_schedule) - 1);
	assert_int_equal(layout.normal_exit, EXIT_AT);
	assert_int_equal(layout.normal_exit_end, EXIT_AT + sizeof(beam_exit) - 1);
	assert_int_equal(layout.frame_bytes, 0x4110);
	assert_int_equal(layout.sp_offset, -0x80);
	assert_int_equal(layout.process_sp_offset, 0x58);
	assert_false(beam_code_read(&code, EXIT_AT + 4, &layout) &&
	             layout.process_sp_offset != 0x58);
	assert_false(beam_code_read(&code, SCHEDULE_AT, &layout));
	assert_false(beam_code_read(&code, BEAM_END, &layout));
}

struct short_code {
	const char *bytes;
	size_t size;
};

static size_t read_short(void *context, uint64_t address, void *buffer, size_t size)
{
	const struct short_code *code = context;

	if (address - 0x1000 >= code->size)
		return 0;
	const size_t left = code->size - (address - 0x1000);
	size = size < left ? size : left;
	memcpy(buffer, code->bytes + (address - 0x1000), size);
	return size;
}

static bool all_together(void *context, uint64_t a, uint64_t b)
{
	(void)context;
	(void)a;
	(void)b;
	return true;
}

static uint64_t no_start(void *context, unsigned int n)
{
	(void)context;
	(void)n;
	return 0;
}

// Erlang code: in it, and behind its calls of C, which run on another stack.
static void test_beam_ways(void **state)
{
	enum { BY_SP, BY_FP, BY_PROCESS };
	static const struct {
		const char *bytes;
		size_t size;
		int by;
		int64_t offset;
	} known[] = {
	    // mov %rbp, %rsp; add $16, %rsp; ret
	    {"\x48\x89\xec\x48\x83\xc4\x10\xc3", 8, BY_FP, 24},
	    // mov 0x58(%r13), %rsp; add $16, %rsp; ret
	    {"\x49\x8b\x65\x58\x48\x83\xc4\x10\xc3", 9, BY_PROCESS, 24},
	    // mov %rsp, %rbp; lea -0x80(%rbx), %rsp; call *%rax; mov %rbp, %rsp; ret
	    {"\x48\x89\xe5\x48\x8d\x63\x80\xff\xd0\x48\x89\xec\xc3", 13, BY_SP, 8},
	    // lea -0x80(%rbx), %rsp; call *%rax; mov 0x58(%r13), %rsp; add $8, %rsp; ret
	    {"\x48\x8d\x63\x80\xff\xd0\x49\x8b\x65\x58\x48\x83\xc4\x08\xc3", 15, BY_SP, 16},
	    // add $16, %rsp; jmp *(%rax,%r12,8)
	    {"\x48\x83\xc4\x10\x42\xff\x24\xe0", 8, BY_SP, 24},
	    // add $8, %rsp; a function's beginning: jmp over a call
	    {"\x48\x83\xc4\x08\xeb\x06\x00\xe8\x00\x00\x00\x00\x90", 13, BY_SP, 16},
	    // call f; jne 1f; add $16, %rsp; ret; 1: call of what never returns; the next
	    // function's
	    // header, whose data (init:do_boot/3, say) are code that leads to that function
	    {"\xe8\x00\x00\x00\x00\x75\x05\x48\x83\xc4\x10\xc3\xe8\x00\x00\x00\x00"
	     "\xe8\x00\x00\x00\x00\x0f\x1f\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	     "\x0b\x53\x00\x00\x00\x00\x00\x00\x4b\x48\x01\x00\x00\x00\x00\x00"
	     "\x01\x00\x00\x00\x00\x00\x00\x00\xeb\x06\x00\xe8\x00\x00\x00\x00",
	     65, BY_SP, 24},
	};
	struct rule rule;

	(void)state;
	for (size_t i = 0; i < array_size(known); i++) {
		struct short_code bytes = {known[i].bytes, known[i].size};
		struct arch_code code = {.read = read_short,
		                         .is_together = all_together,
		                         .find_start = no_start,
		                         .is_tail_call = beam_code_is_tail_call,
		                         .is_last_call = beam_code_is_header,
		                         .changes_stacks = true,
		                         .context = &bytes};
		assert_true(x86_code_rule(&code, 0x1000, false, &rule));
		assert_int_equal(rule.is_elsewhere, known[i].by != BY_SP);
		if (known[i].by == BY_PROCESS) {
			const struct expression_op *ops = rule.cfa_expression->ops;
			assert_int_equal(ops[0].atom, 0x70 + beam_code_process);
			assert_int_equal(ops[0].number, 0x58);
			assert_int_equal(ops[2].number, known[i].offset);
		} else {
			assert_int_equal(rule.cfa_register, known[i].by == BY_SP ? 7 : 6);
			assert_int_equal(rule.cfa_offset, known[i].offset);
		}
		rule_deinit(&rule);
		// Other code does nothing of that kind.
		code.is_tail_call = code.is_last_call = NULL;
		code.changes_stacks = false;
		assert_false(x86_code_rule(&code, 0x1000, false, &rule) &&
		             known[i].by == BY_PROCESS);
	}
}

// A failed check of the stack's guard leads to a call that never returns, behind which the next
// function begins, unknown to any symbol.
static void test_stack_guard(void **state)
{
	// call f; sub %fs:0x28, %rax; jne 1f; add $16, %rsp; ret; 1: call g; ret
	static const char start[] = "\xe8\x00\x00\x00\x00\x64\x48", end[] = "\x04\x25",
	                  rest[] = "\x75\x05\x48\x83\xc4\x10\xc3\xe8\x00\x00\x00\x00\xc3";
	static const struct {
		char opcode, displacement;
		bool is_guard;
	} known[] = {
	    {0x2b, 0x28, true},  {0x33, 0x28, true},  {0x3b, 0x28, true},
	    {0x03, 0x28, false}, {0x2b, 0x30, false},
	};
	struct rule rule;

	(void)state;
	for (size_t i = 0; i < array_size(known); i++) {
		const char middle[] = {known[i].displacement, 0, 0, 0};
		char bytes[64];
		struct short_code context = {bytes, 0};
		const struct arch_code code = {.read = read_short,
		                               .is_together = all_together,
		                               .find_start = no_start,
		                               .context = &context};
		char *at = mempcpy(bytes, start, sizeof(start) - 1);
		*at++ = known[i].opcode;
		at = mempcpy(at, end, sizeof(end) - 1);
		at = mempcpy(at, middle, sizeof(middle));
		at = mempcpy(at, rest, sizeof(rest) - 1);
		context.size = (size_t)(at - bytes);
		assert_int_equal(x86_code_rule(&code, 0x1000, false, &rule), known[i].is_guard);
		if (known[i].is_guard)
			assert_int_equal(rule.cfa_offset, 24);
	}
}

// The function whose value is a variable's, and others that are nearly one.
static void test_returned_variable(void **state)
{
	static const struct {
		uint8_t code[RETURNED_VARIABLE_CODE_BYTES];
		uint64_t variable; // 0: none
	} known[] = {
	    {{0x48, 0x8b, 0x05, 0x49, 0xa3, 0x18, 0x00, 0xc3}, 0x1000 + 7 + 0x18a349},
	    {{0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b, 0x05, 0xf0, 0xff, 0xff, 0xff, 0xc3},
	     0x1000 + 11 - 16},
	    {{0x48, 0x8b, 0x05, 0x49, 0xa3, 0x18, 0x00, 0x90}, 0}, // goes on
	    {{0x48, 0x8d, 0x05, 0x49, 0xa3, 0x18, 0x00, 0xc3}, 0}, // lea
	    {{0x8b, 0x05, 0x49, 0xa3, 0x18, 0x00, 0xc3}, 0},       // 32 bits
	    {{0x48, 0x8b, 0x0d, 0x49, 0xa3, 0x18, 0x00, 0xc3}, 0}, // %rcx
	    {{0x48, 0x8b, 0x87, 0x49, 0xa3, 0x18, 0x00, 0xc3}, 0}, // of %rdi
	    {{0x48, 0x8b, 0x07, 0xc3}, 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(known); i++) {
		uint64_t variable = 0;
		assert_int_equal(returned_variable(known[i].code, 0x1000, &variable),
		                 known[i].variable != 0);
		assert_int_equal(variable, known[i].variable);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lengths),           cmocka_unit_test(test_luajit_entry),
	    cmocka_unit_test(test_return_by_jump),    cmocka_unit_test(test_beam_layout),
	    cmocka_unit_test(test_beam_ways),         cmocka_unit_test(test_stack_guard),
	    cmocka_unit_test(test_returned_variable), cmocka_unit_test(test_against_tables),
	};

	files = argv + 1;
	n_files = argc - 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

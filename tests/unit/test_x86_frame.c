// SPDX-License-Identifier: MIT
// x86_frame: how far code says that SP is from its frame, against the unwinding tables of the same
// code: by SP at every place where they count from it, by the frame pointer elsewhere.
//
//     test_x86_frame FILE...
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfi.h"
#include "fde.h"
#include "frame_rule.h"
#include "memory.h"
#include "module.h"
#include "rule.h"
#include "symbol_table.h"
#include "unit.h"
#include "x86_code.h"
#include "x86_frame.h"
#include "x86_instruction.h"

enum { MAX_SHOWN = 8, STEP = 7 };

static char **files;
static int n_files;

struct counts {
	struct module *module;
	size_t n_by_sp, n_by_fp, n_wrong; // compared, and wrong among them
	size_t sp_unknown, fp_unknown;    // nothing was found
};

// What the tables tell of SP must not be asked for where it is what is to be checked.
static bool was_asked;

static bool find_no_sp(void *context, uint64_t address, int64_t *ret)
{
	(void)context, (void)address, (void)ret;
	was_asked = true;
	return false;
}

// glibc's assembly for big numbers (GMP's) pushes registers, and its tables say nothing of that.
static bool has_wrong_tables(struct module *module, uint64_t address)
{
	const char *name = symbol_table_find(module_symbols(module), address);

	return name && strncmp(name, "__mpn_", 6) == 0;
}

static void check(struct counts *counts, uint64_t address, const char *what, int64_t ours,
                  int64_t theirs)
{
	if (ours != theirs && !has_wrong_tables(counts->module, address) &&
	    counts->n_wrong++ < MAX_SHOWN)
		print_message("# %s %#jx: CFA at %s + %jd, not %jd\n", module_name(counts->module),
		              (uintmax_t)address, what, (intmax_t)ours, (intmax_t)theirs);
}

static void compare_at(struct counts *counts, uint64_t address, bool is_call)
{
	const struct arch *arch = ARCH_NATIVE;
	struct arch_functions functions;
	struct arch_frame frame;
	struct rule rule;

	frame_rule_functions(counts->module, &functions);
	if (!cfi_find_rule(counts->module, address, &rule))
		return;
	const bool by_sp = !rule.cfa_expression && rule.cfa_register == arch->sp;
	const bool by_fp = !rule.cfa_expression && rule.cfa_register == arch->fp;
	if (by_sp)
		functions.find_sp = find_no_sp;
	was_asked = false;
	const bool found = x86_frame_find(&functions, address, is_call, &frame);
	if (by_sp && found && !was_asked) {
		counts->n_by_sp++;
		check(counts, address, "SP", frame.sp_to_cfa, rule.cfa_offset);
	} else if (by_fp && found && frame.has_fp) {
		counts->n_by_fp++;
		check(counts, address, "FP", frame.fp_to_cfa, rule.cfa_offset);
	} else {
		counts->sp_unknown += by_sp;
		counts->fp_unknown += by_fp;
	}
	rule_deinit(&rule);
}

// Some of the calls of a function, and of its other instructions.
static void compare_function(struct counts *counts, const uint8_t *code, uint64_t start,
                             uint64_t end)
{
	struct instruction i;
	size_t n = start, n_calls = start / 16;

	for (uint64_t at = start; at < end; at += i.length) {
		if (!x86_instruction_decode(code + (at - start), end - at, &i))
			return;
		const uint64_t next = at + i.length;
		if (i.map == MAP_ONE && i.opcode == 0xe8 && n_calls++ % STEP == 0)
			compare_at(counts, next - 1, true);
		else if (n++ % (STEP * STEP) == 0)
			compare_at(counts, at, false);
	}
}

static bool is_entry(struct module *module, uint64_t start)
{
	struct arch_functions functions;
	struct arch_function function;

	frame_rule_functions(module, &functions);
	return functions.find(module, start, &function) && function.is_entry;
}

static void compare_file(void *context)
{
	struct counts *counts = context;
	uint64_t text, start, end;
	size_t size;

	if (!module_find_section(counts->module, ".text", &text))
		return;
	const uint8_t *code = module_data(counts->module, text, &size);
	for (uint64_t at = text; code && at - text < size;) {
		if (!fde_find(counts->module, at, &start, &end) || end - text > size) {
			at++;
			continue;
		}
		if (start >= text && is_entry(counts->module, start))
			compare_function(counts, code + (start - text), start, end);
		at = end;
	}
}

static void test_against_tables(void **state)
{
	size_t n_by_sp = 0, n_by_fp = 0;

	(void)state;
	for (int i = 0; i < n_files; i++) {
		struct modules modules = {0};
		const int fd = open(files[i], O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		struct counts counts = {.module =
		                            modules_add(&modules, MODULE_FILE, files[i], 1, 1, fd)};
		assert_true(module_guard(counts.module, compare_file, &counts, MODULE_FOR_NAMES));
		print_message("# %s: by SP %zu (%zu unknown), by FP %zu (%zu unknown), %zu wrong\n",
		              files[i], counts.n_by_sp, counts.sp_unknown, counts.n_by_fp,
		              counts.fp_unknown, counts.n_wrong);
		n_by_sp += counts.n_by_sp;
		n_by_fp += counts.n_by_fp;
		assert_int_equal(counts.n_wrong, 0);
		modules_deinit(&modules);
	}
	assert_true(n_by_sp > 1000 && n_by_fp > 100);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_against_tables),
	};

	files = argv + 1;
	n_files = argc - 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

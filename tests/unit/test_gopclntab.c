// SPDX-License-Identifier: MIT
// gopclntab: a Go program's own table against its .debug_frame, .symtab and DWARF, at every few
// bytes of its code; and damaged tables.
//
//     test_gopclntab GOLANG GOLANG-STRIPPED
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "cfi.h"
#include "dwarf_index.h"
#include "go_runtime.h"
#include "gopclntab.h"
#include "memory.h"
#include "module.h"
#include "rule.h"
#include "symbol_table.h"
#include "unit.h"

enum { STEP = 7, N_DAMAGED_FILES = 60, N_DAMAGED_ADDRESSES = 200, MAX_SHOWN = 5 };

static const char *program, *stripped_program;

struct comparison {
	struct module *module, *stripped;
	size_t n, n_wrong;
	bool is_done;
};

static struct module *add_file(struct modules *modules, const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return modules_add(modules, MODULE_FILE, path, 1, modules->count + 1, fd);
}

// Compares both programs, which have the same code, over all of it.
static void compare(guard_work *work, double max_wrong)
{
	struct modules modules = {0};
	struct comparison comparison = {
	    .module = add_file(&modules, program),
	    .stripped = add_file(&modules, stripped_program),
	};

	assert_true(module_guard(comparison.module, work, &comparison, MODULE_FOR_NAMES));
	assert_true(comparison.is_done);
	print_message("# %zu compared, %zu differ\n", comparison.n, comparison.n_wrong);
	assert_true(comparison.n > 10000);
	assert_true((double)comparison.n_wrong <= max_wrong * (double)comparison.n);
	modules_deinit(&modules);
}

static void find_code(struct module *module, uint64_t *ret_start, uint64_t *ret_end)
{
	size_t size;

	if (!module_find_section(module, ".text", ret_start) ||
	    !module_data(module, *ret_start, &size))
		abort();
	*ret_end = *ret_start + size;
}

static void compare_rules(void *context)
{
	struct comparison *comparison = context;
	struct gopclntab *table = module_gopclntab(comparison->stripped);
	uint64_t start, end;

	find_code(comparison->module, &start, &end);
	for (uint64_t at = start; at < end && table; at += STEP) {
		struct rule theirs = {0}, ours = {0};
		if (!cfi_find_rule(comparison->module, at, &theirs) ||
		    !gopclntab_rule(table, at, &ours))
			continue;
		comparison->n++;
		if (theirs.kind != ours.kind || theirs.cfa_expression ||
		    theirs.cfa_register != ours.cfa_register ||
		    theirs.cfa_offset != ours.cfa_offset) {
			if (comparison->n_wrong++ < MAX_SHOWN)
				print_message("# %#jx: CFA at %jd, not %jd\n", (uintmax_t)at,
				              (intmax_t)ours.cfa_offset,
				              (intmax_t)theirs.cfa_offset);
		}
		rule_deinit(&theirs);
	}
	comparison->is_done = true;
}

static void test_rules(void **state)
{
	(void)state;
	compare(compare_rules, 0);
}

// The linker marks the calling convention of assembly in .symtab alone.
static bool same_name(const char *symbol, const char *name)
{
	const size_t length = strlen(name);

	return strncmp(symbol, name, length) == 0 &&
	       (symbol[length] == '\0' || strcmp(symbol + length, ".abi0") == 0);
}

static void compare_names(void *context)
{
	struct comparison *comparison = context;
	const struct symbol_table *symbols = module_symbols(comparison->module);
	struct gopclntab *table = module_gopclntab(comparison->stripped);
	uint64_t start, end;

	find_code(comparison->module, &start, &end);
	for (uint64_t at = start; at < end && table; at += STEP) {
		const char *symbol = symbol_table_find(symbols, at);
		const char *name = gopclntab_name(table, at);
		if (!symbol || !name)
			continue;
		comparison->n++;
		if (!same_name(symbol, name) && comparison->n_wrong++ < MAX_SHOWN)
			print_message("# %#jx: %s, not %s\n", (uintmax_t)at, name, symbol);
	}
	comparison->is_done = true;
}

static void test_names(void **state)
{
	(void)state;
	// Some symbols share their code, and a few bytes between functions belong to none.
	compare(compare_names, 0.001);
}

static bool same_level(const struct dwarf_level *a, const struct dwarf_level *b)
{
	return a->name && b->name && a->file && b->file && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->file, b->file) == 0 && a->line == b->line;
}

static void compare_levels(void *context)
{
	struct comparison *comparison = context;
	struct dwarf_level *theirs = memory_alloc_zeroed(DWARF_MAX_LEVELS, sizeof(*theirs));
	struct dwarf_level *ours = memory_alloc_zeroed(DWARF_MAX_LEVELS, sizeof(*ours));
	struct gopclntab *table = module_gopclntab(comparison->stripped);
	uint64_t start, end, bias;

	find_code(comparison->module, &start, &end);
	struct dwarf_index *dwarf =
	    dwarf_index_create(module_dwarf(comparison->module, &bias), -1, NULL);
	for (uint64_t at = start; at < end && table; at += STEP) {
		const size_t n_theirs = dwarf_index_find(dwarf, at - bias, theirs);
		const size_t n_ours = gopclntab_find(table, at, ours);
		if (n_theirs == 0 || !theirs[0].name || n_ours == 0)
			continue;
		comparison->n++;
		bool same = n_theirs == n_ours;
		for (size_t i = 0; i < n_ours && same; i++)
			same = same_level(&ours[i], &theirs[i]);
		if (!same && comparison->n_wrong++ < MAX_SHOWN)
			print_message("# %#jx: %zu %s %s:%u, not %zu %s %s:%u\n", (uintmax_t)at,
			              n_ours, ours[0].name, ours[0].file, ours[0].line, n_theirs,
			              theirs[0].name, theirs[0].file, theirs[0].line);
	}
	dwarf_index_destroy(dwarf);
	free(theirs);
	free(ours);
	comparison->is_done = true;
}

static void test_levels(void **state)
{
	(void)state;
	compare(compare_levels, 0.02);
}

// The functions that the unwinder looks for.
static void find_functions(void *context)
{
	struct comparison *comparison = context;
	struct gopclntab *table = module_gopclntab(comparison->stripped);
	static const struct {
		const char *name;
		unsigned int flags;
	} functions[] = {
	    {"runtime.systemstack", GO_WRITES_SP},
	    {"runtime.mcall", GO_WRITES_SP},
	    {"runtime.goexit", GO_TOP_FRAME},
	    {"main.main", 0},
	};
	uint64_t address, entry;

	assert_non_null(table);
	for (size_t i = 0; i < array_size(functions); i++) {
		assert_true(gopclntab_find_name(table, functions[i].name, 0, SIZE_MAX, &address));
		assert_string_equal(gopclntab_name(table, address), functions[i].name);
		assert_true(gopclntab_entry(table, address + 1, &entry));
		assert_int_equal(entry, address);
		assert_int_equal(gopclntab_flags(table, address) & (GO_TOP_FRAME | GO_WRITES_SP),
		                 functions[i].flags);
	}
	assert_false(gopclntab_find_name(table, "runtime.systemstac", 0, SIZE_MAX, &address));
	assert_false(gopclntab_find_name(table, "main.main", 0, 10, &address));
	assert_true(gopclntab_find_name(table, "main.main", address, 1, &entry));
	assert_int_equal(entry, address);
	assert_false(gopclntab_find_name(table, "main.main", address + 4096, SIZE_MAX, &entry));
	assert_false(gopclntab_entry(table, 0, &entry));
	assert_int_equal(gopclntab_flags(table, 0), 0);
	comparison->is_done = true;
}

static void test_functions(void **state)
{
	struct modules modules = {0};
	struct comparison comparison = {.stripped = add_file(&modules, stripped_program)};

	(void)state;
	assert_true(
	    module_guard(comparison.stripped, find_functions, &comparison, MODULE_FOR_RULES));
	assert_true(comparison.is_done);
	modules_deinit(&modules);
}

// Another magic number (garble makes a random one) in a table that is whole otherwise.
static void test_other_magic(void **state)
{
	struct modules modules = {0};
	struct stat status;
	uint64_t address;
	size_t size;

	(void)state;
	_cleanup_close_ int fd = open(stripped_program, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &status) == 0);
	_cleanup_free_ char *bytes = memory_alloc(status.st_size);
	assert_int_equal(pread(fd, bytes, status.st_size, 0), status.st_size);
	struct module *whole = add_file(&modules, stripped_program);
	assert_true(module_find_section(whole, ".gopclntab", &address));
	char *place = memmem(bytes, status.st_size, module_data(whole, address, &size), 64);
	assert_non_null(place);
	memcpy(place, "\x8e\x41\x0a\xa7", 4);
	const int other = memfd_create("other", MFD_CLOEXEC);
	assert_int_equal(write(other, bytes, status.st_size), status.st_size);
	struct comparison comparison = {
	    .stripped = modules_add(&modules, MODULE_FILE, "other", 2, 1, other),
	};
	assert_true(
	    module_guard(comparison.stripped, find_functions, &comparison, MODULE_FOR_RULES));
	assert_true(comparison.is_done);
	modules_deinit(&modules);
}

static void use_damaged(void *context)
{
	struct comparison *comparison = context;
	struct dwarf_level *levels = memory_alloc_zeroed(DWARF_MAX_LEVELS, sizeof(*levels));
	struct gopclntab *table = module_gopclntab(comparison->stripped);
	uint64_t start, end, entry;

	find_code(comparison->stripped, &start, &end);
	if (table)
		comparison->n +=
		    gopclntab_find_name(table, "runtime.systemstack", 0, SIZE_MAX, &entry);
	for (int i = 0; i < N_DAMAGED_ADDRESSES && table; i++) {
		const uint64_t at = start + (end - start) / N_DAMAGED_ADDRESSES * i;
		struct rule rule;
		const size_t n = gopclntab_find(table, at, levels);
		assert_true(n <= DWARF_MAX_LEVELS);
		for (size_t k = 0; k < n; k++)
			comparison->n += levels[k].name && levels[k].file &&
			                 strlen(levels[k].name) + strlen(levels[k].file) > 0;
		comparison->n += gopclntab_rule(table, at, &rule);
		comparison->n += go_runtime_rule(comparison->stripped, at, i % 2, &rule);
	}
	free(levels);
	comparison->is_done = true;
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1103515245 + 12345;
	return *state >> 8;
}

static void test_damaged(void **state)
{
	struct modules modules = {0};
	struct stat status;
	uint64_t address;
	size_t size, n = 0;
	uint32_t random = 1;

	(void)state;
	_cleanup_close_ int fd = open(stripped_program, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &status) == 0);
	_cleanup_free_ char *bytes = memory_alloc(status.st_size);
	assert_int_equal(pread(fd, bytes, status.st_size, 0), status.st_size);
	struct module *whole = add_file(&modules, stripped_program);
	assert_true(module_find_section(whole, ".gopclntab", &address));
	const char *table = (const char *)module_data(whole, address, &size);
	// The program is not position-independent and has one table: it stands there once.
	const char *place = memmem(bytes, status.st_size, table, size);
	assert_non_null(place);
	for (int i = 0; i < N_DAMAGED_FILES; i++) {
		const int damaged = memfd_create("damaged", MFD_CLOEXEC);
		struct comparison comparison = {
		    .stripped = modules_add(&modules, MODULE_FILE, "damaged", 2, i + 1, damaged),
		};
		assert_int_equal(write(damaged, bytes, status.st_size), status.st_size);
		const size_t n_bytes = i % 2 ? 1 + i / 4 : 20000;
		for (size_t k = 0; k < n_bytes; k++) {
			const char byte = (char)next_random(&random);
			// The header, or everything behind it.
			const size_t at = i % 2 ? next_random(&random) % 72
			                        : 72 + next_random(&random) % (size - 72);
			assert_int_equal(pwrite(damaged, &byte, 1, place - bytes + at), 1);
		}
		assert_true(
		    module_guard(comparison.stripped, use_damaged, &comparison, MODULE_FOR_NAMES));
		assert_true(comparison.is_done);
		n += comparison.n;
	}
	assert_true(n > 0);
	modules_deinit(&modules);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rules),       cmocka_unit_test(test_names),
	    cmocka_unit_test(test_levels),      cmocka_unit_test(test_functions),
	    cmocka_unit_test(test_other_magic), cmocka_unit_test(test_damaged),
	};

	if (argc != 3)
		return 2;
	program = argv[1];
	stripped_program = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// symbolize: stated names and lines of fixtures; each address of them and of libc against
// addr2line; damaged files.
//
//     test_symbolize FIXTURE FIXTURE-WITHOUT-DWARF CXX-FIXTURE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hash.h"
#include "memory.h"
#include "module.h"
#include "name_cache.h"
#include "profile.h"
#include "symbolize.h"
#include "unit.h"

enum { N_DAMAGED_FILES = 200, N_DAMAGED_ADDRESSES = 64 };

// That look-ups of a file find again what they have found before.
static struct name_cache *cache;

static const char *fixture, *plain_fixture, *cxx_fixture;

// A file, some of its addresses, and what they are called.
struct look_up {
	struct modules modules;
	struct profile profile;
	struct symbols symbols;
};

static void look_up_file(struct look_up *look_up, const char *path)
{
	*look_up = (struct look_up){0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	modules_add(&look_up->modules, MODULE_FILE, path, 1, 1, fd);
}

static void look_up_run(struct look_up *look_up, bool inlines)
{
	const struct symbolize_options options = {.inlines = inlines, .cache = cache};

	symbolize(&look_up->profile, &look_up->modules, &options, &look_up->symbols);
	assert_int_equal(look_up->symbols.n_locations, look_up->profile.n_locations);
}

static void look_up_deinit(struct look_up *look_up)
{
	symbols_deinit(&look_up->symbols);
	profile_deinit(&look_up->profile);
	modules_deinit(&look_up->modules);
}

// The lines of a location as text: "name file:line" each, without the file's directories.
static void describe(const struct look_up *look_up, uint32_t location, char *ret, size_t size)
{
	struct location_lines lines = look_up->symbols.locations[location];
	size_t used = 0;

	ret[0] = '\0';
	for (uint32_t i = 0; i < lines.count && used < size; i++) {
		const struct line *line = &look_up->symbols.lines[lines.first + i];
		const struct function *function = &look_up->symbols.functions[line->function];
		const char *slash = strrchr(function->file, '/');

		used += (size_t)snprintf(ret + used, size - used, "%s%s %s:%u", i ? " < " : "",
		                         function->name, slash ? slash + 1 : function->file,
		                         line->line);
	}
}

// The output of the command for the file.
static FILE *run(const char *words, const char *path)
{
	_cleanup_free_ char *command = memory_printf("%s '%s'", words, path);
	FILE *output = popen(command, "r");

	assert_non_null(output);
	return output;
}

static uint64_t address_of(const char *path, const char *symbol)
{
	FILE *names = run("nm", path);
	unsigned long address, found = 0;
	char line[1024], name[256];

	while (fgets(line, sizeof(line), names)) // undefined ones have no address
		if (sscanf(line, "%lx %*s %255s", &address, name) == 2 && strcmp(name, symbol) == 0)
			found = address;
	pclose(names);
	assert_int_not_equal(found, 0);
	return found;
}

static void check_at(const char *path, bool inlines, const char *symbol, uint64_t offset,
                     const char *expected)
{
	struct look_up look_up;
	char text[4096];

	look_up_file(&look_up, path);
	uint64_t address = address_of(path, symbol) + offset;
	uint32_t id = profile_intern_location(&look_up.profile, 0, address);
	look_up_run(&look_up, inlines);
	describe(&look_up, id, text, sizeof(text));
	assert_string_equal(text, expected);
	assert_int_equal(look_up.symbols.n_unnamed, expected[0] == '\0');
	look_up_deinit(&look_up);
}

static void test_inlined(void **state)
{
	(void)state;
	check_at(fixture, true, "here_innermost", 0,
	         "innermost inline_fixture.c:102 < middle inline_fixture.c:202 < "
	         "outermost inline_fixture.c:302");
	check_at(fixture, true, "here_middle", 0,
	         "middle inline_fixture.c:203 < outermost inline_fixture.c:302");
	check_at(fixture, true, "here_outermost", 0, "outermost inline_fixture.c:303");
	check_at(fixture, false, "here_innermost", 0, "outermost inline_fixture.c:302");
	check_at(fixture, false, "here_outermost", 0, "outermost inline_fixture.c:303");
}

// How the cache knows an address of the fixture.
static struct name_key key_of(const char *symbol)
{
	struct look_up look_up;

	look_up_file(&look_up, fixture);
	const struct module *module = look_up.modules.items[0];
	assert_non_null(module_dwfl(look_up.modules.items[0]));
	assert_int_not_equal(module->build_id_size, 0);
	const struct name_key key = {
	    .device = module->device,
	    .inode = module->inode,
	    .build = hash_bytes(module->build_id, module->build_id_size),
	    .address = address_of(fixture, symbol),
	};
	look_up_deinit(&look_up);
	return key;
}

// What was found once is not looked for again: neither what is there nor what is not.
static void test_cached(void **state)
{
	const struct name_key known = key_of("here_innermost"), forged = key_of("here_middle");
	struct cached_line lines[NAME_CACHE_MAX_LINES];

	(void)state;
	cache = name_cache_create();
	for (int i = 0; i < 2; i++)
		check_at(fixture, true, "here_innermost", 0,
		         "innermost inline_fixture.c:102 < middle inline_fixture.c:202 < "
		         "outermost inline_fixture.c:302");
	assert_int_equal(name_cache_find(cache, &known, lines), 3);
	assert_string_equal(lines[1].system_name, "middle");
	name_cache_add(cache, &forged, &(struct cached_line){"forged", "f.c", "", 1, 2, false}, 1);
	check_at(fixture, true, "here_middle", 0, "forged f.c:2");
	name_cache_destroy(cache);
	cache = name_cache_create();
	name_cache_add(cache, &forged, NULL, 0);
	check_at(fixture, true, "here_middle", 0, "");
	name_cache_destroy(cache);
	cache = NULL;
}

// What libraries call by names of their own in their debugging information.
static void test_aliases(void **state)
{
	(void)state;
	check_at(fixture, true, "here_known", 0, "known_name inline_fixture.c:502");
	check_at(fixture, true, "here_own", 0, "own_name inline_fixture.c:602");
	check_at(fixture, true, "here_alias", 0, "weak_name inline_fixture.c:402");
}

static void test_symbols(void **state)
{
	(void)state;
	check_at(plain_fixture, true, "here_innermost", 0, "outermost :0");
	check_at(plain_fixture, true, "here_alias", 0, "weak_name :0");
	check_at(plain_fixture, true, "here_known", 0, "known_name :0");
	check_at(plain_fixture, true, "unsized_first", 0, "unsized_first :0");
	check_at(plain_fixture, true, "unsized_first", 31, "unsized_first :0");
	check_at(plain_fixture, true, "unsized_second", 0, "unsized_second :0");
	check_at(plain_fixture, true, "unsized_second", 7, "unsized_second :0");
	check_at(plain_fixture, true, "sized", 4, "sized :0");
	check_at(plain_fixture, true, "sized", 7, "sized :0");
	check_at(plain_fixture, true, "sized", 8, "within_sized :0");
	check_at(plain_fixture, true, "last", 0, "last :0");
	check_at(plain_fixture, true, "inline_fixture_sum", 0, "");
}

// Checks the name of the linkage table's entry that objdump calls so. False if there is none.
static bool check_plt(const char *label, const char *expected)
{
	FILE *code = run("objdump -d --no-show-raw-insn", plain_fixture);
	struct look_up look_up;
	char line[512], text[256];
	unsigned long address = 0, found = 0;

	while (fgets(line, sizeof(line), code))
		if (strstr(line, label) && strstr(line, "@plt>:") &&
		    sscanf(line, "%lx", &address) == 1)
			found = address;
	pclose(code);
	if (!found)
		return false;
	look_up_file(&look_up, plain_fixture);
	uint32_t id = profile_intern_location(&look_up.profile, 0, found);
	look_up_run(&look_up, true);
	describe(&look_up, id, text, sizeof(text));
	assert_string_equal(text, expected);
	look_up_deinit(&look_up);
	return true;
}

// The call of puts in outermost goes through the procedure linkage table, and so does that of a
// function that another one of the file chooses.
static void test_plt(void **state)
{
	(void)state;
	if (!check_plt("<puts@plt>:", "puts@plt :0") || !check_plt("<*ABS*+", "by_choice@plt :0"))
		skip();
}

static void test_places_without_names(void **state)
{
	struct look_up look_up;

	(void)state;
	look_up_file(&look_up, "/dev/null");
	modules_add(&look_up.modules, MODULE_FILE, "/nonexistent", 3, 4, -1);
	modules_add(&look_up.modules, MODULE_ANONYMOUS, "[anon]", 0, 0, -1);
	modules_add(&look_up.modules, MODULE_UNKNOWN, "[unknown]", 0, 0, -1);
	for (uint32_t module = 0; module < 7; module++)
		profile_intern_location(&look_up.profile, module, 0x1000);
	look_up_run(&look_up, true);
	assert_int_equal(look_up.symbols.n_unnamed, 7);
	assert_int_equal(look_up.symbols.n_lines, 0);
	look_up_deinit(&look_up);
}

// Every instruction of the file's .text, up to a bound.
static void add_instructions(struct look_up *look_up, const char *path, size_t step)
{
	FILE *code = run("objdump -d --no-show-raw-insn -j .text", path);
	char line[1024];
	unsigned long address;
	size_t n = 0;

	while (fgets(line, sizeof(line), code)) {
		int end = 0;

		if (sscanf(line, " %lx:%n", &address, &end) != 1 || end == 0 ||
		    strstr(line, "nop") || strstr(line, "xchg   %ax,%ax"))
			continue;
		if (n++ % step == 0)
			profile_intern_location(&look_up->profile, 0, address);
	}
	pclose(code);
}

// The addresses, one a line, for addr2line to read.
static void write_addresses(const struct look_up *look_up, char *path)
{
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");

	assert_non_null(file);
	for (size_t i = 0; i < look_up->profile.n_locations; i++)
		fprintf(file, "%#lx\n", (unsigned long)look_up->profile.locations[i].address);
	fclose(file);
}

static const struct function *function_at(const struct look_up *look_up, uint32_t line)
{
	return &look_up->symbols.functions[look_up->symbols.lines[line].function];
}

// Do we and addr2line name the line the same? Without a linkage name, it leaves the namespaces
// out, or gives the innermost inlined call the name of the function around it, from the symbols.
static bool same_name(const struct look_up *look_up, struct location_lines lines, uint32_t i,
                      const char *theirs)
{
	const char *ours = function_at(look_up, lines.first + i)->name;
	size_t a = strlen(ours), b = strlen(theirs);

	if (b <= a && strcmp(ours + a - b, theirs) == 0)
		return true;
	// A library's inner name, where we have the one that people know.
	if (strncmp(theirs, "__GI_", 5) == 0 && a <= b && strcmp(theirs + b - a, ours) == 0)
		return true;
	uint32_t last = lines.first + lines.count - 1;
	return i == 0 && strcmp(theirs, function_at(look_up, last)->name) == 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

// Does addr2line's "file:line (discriminator n)" say the same? It joins other directories.
static bool same_place(const struct look_up *look_up, uint32_t line, const char *theirs)
{
	const char *file = base_name(theirs), *colon = strrchr(file, ':');
	uint32_t number = look_up->symbols.lines[line].line;

	assert_non_null(colon);
	if ((uint32_t)atoi(colon + 1) != number)
		return false;
	size_t length = (size_t)(colon - file);
	const char *ours = base_name(function_at(look_up, line)->file);
	return number == 0 || (strlen(ours) == length && memcmp(ours, file, length) == 0);
}

// The next line of addr2line's output, without its end.
static bool next_line(FILE *file, char *line, size_t size)
{
	if (!fgets(line, (int)size, file))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

// Compares one location with the pairs (function, file:line) that addr2line says for it; leaves
// the next address in `line`. Returns whether they agree.
static bool compare_location(const struct look_up *look_up, uint32_t id, FILE *oracle, char *line,
                             size_t size)
{
	struct location_lines lines = look_up->symbols.locations[id];
	char place[4096];
	uint32_t n = 0;
	bool same = true;

	while (next_line(oracle, line, size) && strncmp(line, "0x", 2) != 0) {
		assert_true(next_line(oracle, place, sizeof(place)));
		if (strcmp(line, "??") == 0)
			continue;
		if (n >= lines.count) {
			same = false;
			continue;
		}
		same = same && same_place(look_up, lines.first + n, place) &&
		       same_name(look_up, lines, n, line);
		n++;
	}
	return same && n == lines.count;
}

// Returns how many of the locations addr2line sees in another way.
static size_t compare_with_addr2line(const struct look_up *look_up, const char *path)
{
	char list[] = "/tmp/test_symbolize.XXXXXX", line[4096] = "";
	size_t n_different = 0;

	write_addresses(look_up, list);
	_cleanup_free_ char *command =
	    memory_printf("addr2line -a -i -f -C -e '%s' < %s", path, list);
	FILE *oracle = popen(command, "r");
	assert_non_null(oracle);
	assert_true(next_line(oracle, line, sizeof(line)));
	for (uint32_t id = 0; id < look_up->profile.n_locations; id++) {
		assert_int_equal(strtoull(line, NULL, 16), look_up->profile.locations[id].address);
		if (compare_location(look_up, id, oracle, line, sizeof(line)))
			continue;
		char text[4096];
		describe(look_up, id, text, sizeof(text));
		if (n_different++ < 5)
			print_message("# %#lx: %s\n",
			              (unsigned long)look_up->profile.locations[id].address, text);
	}
	pclose(oracle);
	unlink(list);
	return n_different;
}

static void check_against_addr2line(const char *path, size_t step, double allowed)
{
	struct look_up look_up;

	look_up_file(&look_up, path);
	add_instructions(&look_up, path, step);
	assert_true(look_up.profile.n_locations > 50);
	look_up_run(&look_up, true);
	size_t n_different = compare_with_addr2line(&look_up, path);
	print_message("# %zu of %zu addresses differ\n", n_different, look_up.profile.n_locations);
	assert_true((double)n_different <= allowed * (double)look_up.profile.n_locations);
	look_up_deinit(&look_up);
}

static void test_fixtures_against_addr2line(void **state)
{
	(void)state;
	check_against_addr2line(fixture, 1, 0);
	// A few names without a linkage name are mangled in the symbol table, which we prefer.
	check_against_addr2line(cxx_fixture, 1, 0.01);
}

// The exported functions of libc: all have a name, and some have been asked for by the name that
// people know, be it by .dynsym or by libc's debug file, which has them under inner names.
static void test_exported_names(void **state)
{
	FILE *maps = fopen("/proc/self/maps", "re"), *names;
	char line[4096], path[4096] = "", name[512], type;
	static const char *const known[] = {"fdatasync", "write", "read", "qsort_r", "nanosleep"};
	uint32_t known_ids[array_size(known)] = {0};
	struct look_up look_up;
	unsigned long address;
	size_t n_named = 0;

	(void)state;
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "/libc.so") && strchr(line, '/'))
			snprintf(path, sizeof(path), "%.*s", (int)strcspn(strchr(line, '/'), "\n"),
			         strchr(line, '/'));
	fclose(maps);
	if (!path[0])
		skip();
	look_up_file(&look_up, path);
	names = run("nm -D --defined-only", path);
	while (fgets(line, sizeof(line), names))
		if (sscanf(line, "%lx %c %511s", &address, &type, name) == 3 &&
		    strchr("TWi", type)) {
			const uint32_t id = profile_intern_location(&look_up.profile, 0, address);
			for (size_t i = 0; i < array_size(known); i++)
				if (strcspn(name, "@") == strlen(known[i]) &&
				    strncmp(name, known[i], strlen(known[i])) == 0)
					known_ids[i] = id;
		}
	pclose(names);
	assert_true(look_up.profile.n_locations > 1000);
	look_up_run(&look_up, true);
	for (size_t i = 0; i < array_size(known); i++) {
		const struct location_lines lines = look_up.symbols.locations[known_ids[i]];
		assert_true(lines.count > 0);
		assert_string_equal(function_at(&look_up, lines.first + lines.count - 1)->name,
		                    known[i]);
	}
	for (size_t i = 0; i < look_up.symbols.n_locations; i++)
		n_named += look_up.symbols.locations[i].count > 0;
	assert_int_equal(n_named, look_up.profile.n_locations);
	look_up_deinit(&look_up);
}

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

// A copy of the file in memory with some bytes changed.
static int damaged_copy(const uint8_t *bytes, size_t size, uint32_t *random)
{
	_cleanup_free_ uint8_t *copy = memory_alloc(size);
	size_t n_changes = 1 + next_random(random) % 40;
	int fd = memfd_create("damaged", MFD_CLOEXEC);

	memcpy(copy, bytes, size);
	for (size_t i = 0; i < n_changes; i++)
		copy[next_random(random) % size] = (uint8_t)next_random(random);
	assert_int_equal(write(fd, copy, size), size);
	return fd;
}

static void check_damaged(const char *path)
{
	static uint8_t bytes[1 << 20];
	FILE *file = fopen(path, "re");
	uint32_t random = 42;

	assert_non_null(file);
	size_t size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	uint64_t text = address_of(path, "main") & ~(uint64_t)0xfff;
	for (int i = 0; i < N_DAMAGED_FILES; i++) {
		struct look_up look_up = {0};

		modules_add(&look_up.modules, MODULE_FILE, path, 1, 1,
		            damaged_copy(bytes, size, &random));
		for (uint64_t k = 0; k < N_DAMAGED_ADDRESSES; k++)
			profile_intern_location(&look_up.profile, 0, text + k * 23);
		look_up_run(&look_up, true);
		look_up_deinit(&look_up);
	}
}

static void test_damaged_files(void **state)
{
	(void)state;
	check_damaged(fixture);
	check_damaged(cxx_fixture);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_inlined),
	    cmocka_unit_test(test_cached),
	    cmocka_unit_test(test_aliases),
	    cmocka_unit_test(test_symbols),
	    cmocka_unit_test(test_plt),
	    cmocka_unit_test(test_places_without_names),
	    cmocka_unit_test(test_fixtures_against_addr2line),
	    cmocka_unit_test(test_exported_names),
	    cmocka_unit_test(test_damaged_files),
	};

	if (argc != 4) {
		fprintf(stderr, "usage: test_symbolize FIXTURE PLAIN-FIXTURE CXX-FIXTURE\n");
		return 2;
	}
	fixture = argv[1];
	plain_fixture = argv[2];
	cxx_fixture = argv[3];
	return cmocka_run_group_tests(tests, NULL, NULL);
}

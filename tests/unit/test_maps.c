// SPDX-License-Identifier: MIT
// maps: the kernel's text, and texts that are none.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "maps.h"
#include "memory.h"
#include "unit.h"

static void parse(struct maps *maps, const char *text)
{
	maps_parse(maps, text, strlen(text));
}

static void test_plain(void **state)
{
	struct maps maps = {0};

	(void)state;
	parse(&maps, "00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a file\n"
	             "00651000-00652000 r--p 00051000 08:02 173521      /usr/bin/x (deleted)\n"
	             "00e03000-00e24000 rw-p 00000000 00:00 0           [heap]\n"
	             "35b1800000-35b1820000 --xp 00000000 103:102 1\n"
	             "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 \n"
	             "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]");
	assert_int_equal(maps.count, 6);
	const struct mapping *first = &maps.items[0];
	assert_int_equal(first->start, 0x400000);
	assert_int_equal(first->end, 0x452000);
	assert_int_equal(first->file_offset, 0x1000);
	assert_int_equal(first->device, makedev(8, 2));
	assert_int_equal(first->inode, 173521);
	assert_true(first->readable && first->executable);
	assert_string_equal(maps_path(&maps, first), "/usr/bin/a file");
	assert_false(maps.items[1].executable);
	assert_string_equal(maps_path(&maps, &maps.items[1]), "/usr/bin/x (deleted)");
	assert_int_equal(maps.items[3].device, makedev(0x103, 0x102));
	assert_false(maps.items[3].readable);
	assert_string_equal(maps_path(&maps, &maps.items[3]), "");
	assert_string_equal(maps_path(&maps, &maps.items[4]), "");
	assert_string_equal(maps_path(&maps, &maps.items[5]), "[vsyscall]");
	assert_true(maps.items[5].end == UINT64_C(0xffffffffff601000));
	maps_deinit(&maps);
}

// Huge pages without a file look as if they had one.
static void test_huge_pages(void **state)
{
	struct maps maps = {0};

	(void)state;
	parse(&maps, "7f00000-7f20000 r-xp 00200000 00:11 321296962   /anon_hugepage (deleted)\n"
	             "7f20000-7f40000 r-xp 00200000 00:11 321296963   /anon_hugepage\n");
	assert_int_equal(maps.count, 2);
	assert_int_equal(maps.items[0].inode, 0);
	assert_int_equal(maps.items[0].device, 0);
	assert_string_equal(maps_path(&maps, &maps.items[0]), "");
	assert_int_equal(maps.items[1].inode, 321296963);
	assert_string_equal(maps_path(&maps, &maps.items[1]), "/anon_hugepage");
	maps_deinit(&maps);
}

static void test_find(void **state)
{
	struct maps maps = {0};

	(void)state;
	parse(&maps, "1000-2000 r-xp 0 0:0 0\n2000-3000 r-xp 0 0:0 0\n5000-6000 r-xp 0 0:0 0\n");
	assert_int_equal(maps.count, 3);
	assert_null(maps_find(&maps, 0xfff));
	assert_ptr_equal(maps_find(&maps, 0x1000), &maps.items[0]);
	assert_ptr_equal(maps_find(&maps, 0x1fff), &maps.items[0]);
	assert_ptr_equal(maps_find(&maps, 0x2000), &maps.items[1]);
	assert_null(maps_find(&maps, 0x3000));
	assert_ptr_equal(maps_find_from(&maps, 0x3000), &maps.items[2]);
	assert_ptr_equal(maps_find_from(&maps, 0), &maps.items[0]);
	assert_null(maps_find(&maps, 0x6000));
	assert_null(maps_find_from(&maps, UINT64_MAX));
	parse(&maps, "");
	assert_int_equal(maps.count, 0);
	assert_null(maps_find_from(&maps, 0));
	maps_deinit(&maps);
}

// Lines that are none are left out; the others stay.
static void test_malformed(void **state)
{
	static const char *const lines[] = {
	    "",
	    " ",
	    "x",
	    "1000",
	    "1000-",
	    "1000-2000",
	    "1000-2000 ",
	    "1000-2000 r",
	    "1000-2000 r-xp",
	    "1000-2000 r-xp ",
	    "1000-2000 r-xp 0",
	    "1000-2000 r-xp 0 8",
	    "1000-2000 r-xp 0 8:1",
	    "1000-2000 r-xp zz 8:1 0",
	    "2000-1000 r-xp 0 8:1 0",
	    "1000-1000 r-xp 0 8:1 0",
	    "10000000000000000000-20000000000000000000 r-xp 0 8:1 0",
	};

	(void)state;
	for (size_t i = 0; i < array_size(lines); i++) {
		struct maps maps = {0};
		_cleanup_free_ char *text = memory_printf(
		    "100-200 r-xp 0 8:1 0 /a\n%s\n8000-9000 r-xp 0 8:1 0 /b\n", lines[i]);

		parse(&maps, text);
		if (maps.count != 2)
			fail_msg("'%s': %zu mappings", lines[i], maps.count);
		assert_string_equal(maps_path(&maps, &maps.items[0]), "/a");
		assert_string_equal(maps_path(&maps, &maps.items[1]), "/b");
		maps_deinit(&maps);
	}
}

static void test_out_of_order(void **state)
{
	struct maps maps = {0};

	(void)state;
	parse(&maps, "5000-6000 r-xp 0 0:0 0\n1000-2000 r-xp 0 0:0 0\n5800-7000 r-xp 0 0:0 0\n"
	             "6000-7000 r-xp 0 0:0 0\n6000-7000 r-xp 0 0:0 0\n");
	assert_int_equal(maps.count, 2);
	assert_int_equal(maps.items[0].start, 0x5000);
	assert_int_equal(maps.items[1].start, 0x6000);
	maps_deinit(&maps);
}

static void test_nul_and_unterminated(void **state)
{
	static const char text[] = "1000-2000 r-xp 0 0:0 0 /a\0b\n2000-3000 r-xp 0 0:0 0\n";
	struct maps maps = {0};

	(void)state;
	maps_parse(&maps, text, sizeof(text) - 1);
	assert_true(maps.count >= 1);
	maps_parse(&maps, text, 10);
	assert_int_equal(maps.count, 0);
	maps_deinit(&maps);
}

static void test_huge(void **state)
{
	enum { N = 200000 };
	struct maps maps = {0};
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	assert_non_null(stream);
	for (uint64_t i = 1; i <= N; i++)
		fprintf(stream, "%" PRIx64 "-%" PRIx64 " r-xp 0 8:1 5 /lib/%" PRIu64 "\n",
		        i * 0x2000, i * 0x2000 + 0x1000, i);
	fclose(stream);
	maps_parse(&maps, text, size);
	free(text);
	assert_int_equal(maps.count, N);
	for (uint64_t i = 1; i <= N; i += 777) {
		char path[32];

		snprintf(path, sizeof(path), "/lib/%" PRIu64, i);
		const struct mapping *mapping = maps_find(&maps, i * 0x2000 + 0xfff);
		assert_non_null(mapping);
		assert_string_equal(maps_path(&maps, mapping), path);
		assert_null(maps_find(&maps, i * 0x2000 + 0x1000));
	}
	maps_deinit(&maps);
}

static void test_own(void **state)
{
	struct maps maps = {0};
	const uint64_t here = (uint64_t)(uintptr_t)test_own;
	const uint64_t stack = (uint64_t)(uintptr_t)__builtin_frame_address(0);

	(void)state;
	assert_true(maps_read(&maps, getpid(), getpid()));
	maps_read(&maps, getpid(), getpid()); // its own buffers are mappings, under ASan
	maps_read(&maps, getpid(), getpid());
	const struct mapping *code = maps_find(&maps, here);
	assert_non_null(code);
	assert_true(code->executable);
	assert_true(code->inode > 0);
	assert_non_null(strstr(maps_path(&maps, code), program_invocation_short_name));
	const struct mapping *mapping = maps_find(&maps, stack);
	assert_non_null(mapping);
	assert_string_equal(maps_path(&maps, mapping), "[stack]");
	const size_t count = maps.count;
	assert_false(maps_read(&maps, getpid(), getpid())); // nothing has changed
	assert_int_equal(maps.count, count);
	assert_true(maps_read(&maps, 0x7fffffff, 0x7fffffff));
	assert_int_equal(maps.count, 0);
	assert_false(maps_read(&maps, 0x7fffffff, 0x7fffffff));
	maps_deinit(&maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_plain),        cmocka_unit_test(test_huge_pages),
	    cmocka_unit_test(test_find),         cmocka_unit_test(test_malformed),
	    cmocka_unit_test(test_out_of_order), cmocka_unit_test(test_nul_and_unterminated),
	    cmocka_unit_test(test_huge),         cmocka_unit_test(test_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

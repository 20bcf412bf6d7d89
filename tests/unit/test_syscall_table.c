// SPDX-License-Identifier: MIT
// The table of system calls: none of the kernel's is missing, and each row can be acted on.
#include "unit.h"
#include <errno.h>
#include <linux/bpf.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "syscall_table.h"

// arch/x86/entry/syscalls/syscall_64.tbl has none between these.
enum { GAP_START = 337, GAP_END = 424 };

static const uint64_t nothing[6];

static const struct syscall_row *find(int64_t nr)
{
	return syscall_table_find(nr, nothing);
}

static void test_each_call_has_a_row(void **state)
{
	(void)state;
	for (int nr = 0; nr < SYSCALL_TABLE_END; nr++) {
		const struct syscall_row *row = find(nr);
		if (nr >= GAP_START && nr < GAP_END) {
			assert_null(row);
			continue;
		}
		if (!row)
			fail_msg("system call %d has no row", nr);
		assert_true(row->kernel && row->kernel[0] != '\0');
	}
	assert_null(find(SYSCALL_TABLE_END));
	assert_null(find(-1));
	assert_null(find(0x40000000)); // x32's
}

static void test_rests_are_whole(void **state)
{
	(void)state;
	for (int nr = 0; nr < SYSCALL_TABLE_END; nr++) {
		const struct syscall_row *row = find(nr);
		if (!row || row->fate != SYSCALL_CONTINUED)
			continue;
		const struct syscall_rest_rule *rule = row->rest;
		assert_non_null(rule);
		assert_int_equal(rule->kinds != 0, rule->descriptor != 0);
		if (rule->list == LIST_NONE) {
			assert_int_not_equal(rule->count, 0);
			assert_int_equal(rule->part_nr, 0);
		}
		if (rule->refused || rule->added)
			assert_int_not_equal(rule->flags, 0);
	}
}

static void test_arguments_decide(void **state)
{
	const uint64_t load[6] = {BPF_PROG_LOAD}, drain[6] = {0, TCSBRK, 1}, flush[6] = {0, TCFLSH};

	(void)state;
	assert_int_equal(syscall_table_find(SYS_bpf, load)->error, EAGAIN);
	assert_int_equal(find(SYS_bpf)->fate, SYSCALL_LEFT);
	assert_int_equal(syscall_table_find(SYS_ioctl, drain)->fate, SYSCALL_WHOLE);
	assert_int_equal(syscall_table_find(SYS_ioctl, flush)->fate, SYSCALL_LEFT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_each_call_has_a_row),
	    cmocka_unit_test(test_rests_are_whole),
	    cmocka_unit_test(test_arguments_decide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

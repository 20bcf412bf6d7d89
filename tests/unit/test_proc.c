// SPDX-License-Identifier: MIT
// proc: the kernel's texts, with whatever a program may call itself; and its own files.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "memory.h"
#include "proc.h"
#include "unit.h"

// Each field's value is its number in proc(5), but for the flags.
#define STAT_REST                                                                                  \
	" 4 5 6 7 8 4194560 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30\n"

static void test_stat_names(void **state)
{
	static const char *const names[] = {
	    "sleep", "a) R (b", ")", "(", "", " ", "))) S 1 2 3", "a\nb", ") Z 0 0 0 0 0 0 0",
	};

	(void)state;
	for (size_t i = 0; i < array_size(names); i++) {
		_cleanup_free_ char *text = memory_printf("77 (%s) S" STAT_REST, names[i]);
		struct proc_stat stat;

		assert_true(proc_parse_stat(text, &stat));
		assert_int_equal(stat.state, 'S');
		assert_int_equal(stat.flags, 4194560);
		assert_int_equal(stat.n_threads, 20);
		assert_int_equal(stat.start_time, 22);
		assert_int_equal(stat.vsize_bytes, 23);
		assert_int_equal(stat.start_code, 26);
		assert_int_equal(stat.start_stack, 28);
	}
}

// The same number in two namespaces of pids does not make them one.
static void test_status_namespaces(void **state)
{
	static const struct {
		const char *line;
		int ns_pid;
		bool has_own_pids;
	} cases[] = {
	    {"", 77, false}, // a kernel without them
	    {"NSpid:\t77\n", 77, false},
	    {"NSpid:\t77\t5\n", 5, true},
	    {"NSpid:\t77\t77\n", 77, true},
	    {"NSpid:\t77\t9\t1\nNSpgid:\t8\n", 1, true},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		_cleanup_free_ char *text =
		    memory_printf("Name:\ta\nTgid:\t77\n%sUid:\t1\t2\n", cases[i].line);
		struct proc_status status;

		proc_parse_status(text, &status);
		assert_int_equal(status.ns_pid, cases[i].ns_pid);
		assert_int_equal(status.has_own_pids, cases[i].has_own_pids);
	}
}

static void test_stat_malformed(void **state)
{
	static const char *const texts[] = {
	    "",          "77",
	    "77 (a",     "77 (a)",
	    "77 (a) ",   "77 (a) S",
	    "77 (a) S ", "77 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20",
	    "77 (a)S 1", "77 (a) S x x x x x x x x x x x x x x x x x x x x x x x x x x",
	};
	struct proc_stat stat = {.n_threads = 4711};

	(void)state;
	for (size_t i = 0; i < array_size(texts); i++)
		assert_false(proc_parse_stat(texts[i], &stat));
	assert_int_equal(stat.n_threads, 4711);
}

static void test_is_kernels(void **state)
{
	const struct {
		const char *release;
		bool io_worker, user_worker; // what the bits 0x10 and 0x4000 say there
	} cases[] = {
	    {"4.18.0-553.el8_10.x86_64", false, false},
	    {"5.4.0-200-generic", false, false},
	    {"5.11.22", false, false},
	    {"5.12", true, false},
	    {"5.14.0-427.el9.x86_64", true, false},
	    {"6.1.0-26-amd64", true, false},
	    {"6.3.9", true, false},
	    {"6.4.0", true, true},
	    {"6.18.44-fc-v657", true, true},
	    {"7.0-rc1", true, true},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		assert_false(proc_is_kernels(0x400040, cases[i].release)); // an ordinary thread's
		assert_int_equal(proc_is_kernels(0x400050, cases[i].release), cases[i].io_worker);
		assert_int_equal(proc_is_kernels(0x404040, cases[i].release), cases[i].user_worker);
	}
	assert_false(proc_is_kernels(0x404050, ""));
}

static void test_syscall(void **state)
{
	struct proc_syscall call;

	(void)state;
	assert_true(proc_parse_syscall("running\n", &call));
	assert_true(call.running);
	assert_true(proc_parse_syscall("-1 0x7ffc00001000 0x7f0000002000\n", &call));
	assert_false(call.running);
	assert_int_equal(call.nr, -1);
	assert_int_equal(call.sp, 0x7ffc00001000);
	assert_int_equal(call.pc, 0x7f0000002000);
	assert_true(proc_parse_syscall("7 0x1 0x2 0x3 0xffffffffffffffff 0x5 0x6 "
	                               "0x7ffc00001000 0x7f0000002000\n",
	                               &call));
	assert_int_equal(call.nr, 7);
	assert_int_equal(call.args[0], 1);
	assert_true(call.args[3] == UINT64_MAX);
	assert_int_equal(call.args[5], 6);
	assert_int_equal(call.sp, 0x7ffc00001000);
	assert_int_equal(call.pc, 0x7f0000002000);
}

static void test_syscall_malformed(void **state)
{
	static const char *const texts[] = {
	    "", "\n", "runnin", "x", "-1", "-1 0x1", "7 0x1\n", "7 0x1 x", "7 1 2 3 4 5 6 7"};
	struct proc_syscall call;

	(void)state;
	for (size_t i = 0; i < array_size(texts); i++)
		assert_false(proc_parse_syscall(texts[i], &call));
}

static void test_runnable(void **state)
{
	static const char *const malformed[] = {"", "1", "1 2 3", "1 2 3 ", "1 2 3 x/4 5"};

	(void)state;
	assert_int_equal(proc_parse_runnable("0.14 1.52 12.49 17/194 22936\n"), 17);
	for (size_t i = 0; i < array_size(malformed); i++)
		assert_int_equal(proc_parse_runnable(malformed[i]), -1);
}

static void test_last_pid(void **state)
{
	static const char *const malformed[] = {"", "1", "1 ", "1 2/3 x", "1 2/3 4294967296"};

	(void)state;
	assert_int_equal(proc_parse_last_pid("0.14 1.52 12.49 17/194 22936\n"), 22936);
	for (size_t i = 0; i < array_size(malformed); i++)
		assert_int_equal(proc_parse_last_pid(malformed[i]), -1);
}

static void test_own_files(void **state)
{
	const int pid = getpid();
	struct proc_stat stat;
	struct proc_status status;
	struct proc_schedstat schedstat;
	char name[PROC_NAME_SIZE];

	(void)state;
	assert_int_equal(prctl(PR_SET_NAME, "a) R (b"), 0);
	assert_true(proc_read_stat(-1, pid, pid, &stat));
	assert_int_equal(stat.state, 'R');
	assert_true(stat.n_threads >= 1);
	assert_true(stat.vsize_bytes > 0);
	assert_true(proc_read_name(pid, pid, name));
	assert_string_equal(name, "a) R (b");
	assert_true(proc_read_status(pid, &status));
	assert_int_equal(status.tgid, pid);
	assert_int_equal(status.ppid, getppid());
	assert_int_equal(status.uid, getuid());
	assert_int_equal(status.euid, geteuid());
	if (proc_read_schedstat(-1, pid, pid, &schedstat))
		assert_true(schedstat.runs > 0);
}

static void test_gone(void **state)
{
	struct proc_stat stat;
	struct proc_status status;
	char name[PROC_NAME_SIZE];
	const int pid = 0x7fffffff; // above any pid_max

	(void)state;
	assert_false(proc_read_stat(-1, pid, pid, &stat));
	assert_int_equal(errno, ENOENT);
	assert_false(proc_read_status(pid, &status));
	assert_int_equal(errno, ENOENT);
	assert_false(proc_read_name(pid, pid, name));
	assert_int_equal(errno, ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_stat_names),
	    cmocka_unit_test(test_stat_malformed),
	    cmocka_unit_test(test_syscall),
	    cmocka_unit_test(test_syscall_malformed),
	    cmocka_unit_test(test_status_namespaces),
	    cmocka_unit_test(test_runnable),
	    cmocka_unit_test(test_last_pid),
	    cmocka_unit_test(test_own_files),
	    cmocka_unit_test(test_gone),
	    cmocka_unit_test(test_is_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// syscall_mend: what is decided about a call that a stop interrupted, by its registers alone.
#include "unit.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "syscall_mend.h"
#include "syscall_table.h"

enum {
	ERESTARTSYS = 512, // the kernel's own: include/linux/errno.h
	ERESTART_RESTARTBLOCK = 516,
	NO_CALL = -1,
};

struct mend_case {
	const char *what;
	int64_t number, result;
	uint64_t arguments[3];
	enum syscall_mend expected;
};

static void set_up(const struct mend_case *call, struct thread_registers *ret)
{
	*ret = (struct thread_registers){0};
	syscall_set(ret, call->number, call->result);
	for (unsigned int i = 0; i < 3; i++)
		syscall_set_argument(ret, i + 1, call->arguments[i]);
}

static struct syscall_caller this_thread(void)
{
	return (struct syscall_caller){.tid = getpid(), .pid = getpid()};
}

static void check_of(const struct syscall_caller *caller, const struct mend_case *call)
{
	struct thread_registers thread;
	struct syscall_rest rest;

	set_up(call, &thread);
	const enum syscall_mend found = syscall_mend(caller, &thread, &rest);
	if (found != call->expected)
		fail_msg("%s: %d rather than %d", call->what, found, call->expected);
	// Only a call that is entered again has other registers than before.
	if (found == MEND_AGAIN)
		assert_true(syscall_was_interrupted(syscall_result(&thread)));
	else
		assert_int_equal(syscall_result(&thread), call->result);
	assert_int_equal(syscall_number(&thread), call->number);
}

static void check(const struct mend_case *call)
{
	const struct syscall_caller caller = this_thread();

	check_of(&caller, call);
}

static void test_without_descriptors(void **state)
{
	static const struct mend_case cases[] = {
	    {"no call", NO_CALL, -EINTR, {0}, MEND_NOTHING},
	    {"a wait that was interrupted", SYS_epoll_wait, -EINTR, {0}, MEND_AGAIN},
	    {"a wait that has failed", SYS_epoll_wait, -EBADF, {0}, MEND_NOTHING},
	    {"a wait whose time is over", SYS_epoll_wait, 0, {0}, MEND_NOTHING},
	    {"a wait that has ended", SYS_epoll_wait, 1, {0}, MEND_NOTHING},
	    {"the kernel restarts it", SYS_futex, -ERESTARTSYS, {0}, MEND_NOTHING},
	    {"it could close another file", SYS_close, -EINTR, {0}, MEND_LEFT},
	    {"a wait that begins anew", SYS_fallocate, -EINTR, {0}, MEND_REST},
	    {"one with another error", SYS_bpf, -EAGAIN, {BPF_PROG_LOAD}, MEND_REST},
	    {"its usual error", SYS_bpf, -EINTR, {BPF_PROG_LOAD}, MEND_NOTHING},
	    {"the same error, another request", SYS_bpf, -EAGAIN, {BPF_MAP_CREATE}, MEND_NOTHING},
	    {"a part of the bytes", SYS_getrandom, 300, {1 << 16, 1000, 0}, MEND_REST},
	    {"all of the bytes", SYS_getrandom, 1000, {1 << 16, 1000, 0}, MEND_NOTHING},
	    {"a number of no call", 100000, -EINTR, {0}, MEND_LEFT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check(&cases[i]);
}

// What is read of a device may be cut short by a stop, of a regular file it is not.
static void test_descriptors(void **state)
{
	FILE *file = tmpfile();
	const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_non_null(file);
	assert_true(zero >= 0);
	const uint64_t fds[] = {(uint64_t)zero, (uint64_t)fileno(file)};
	check(&(struct mend_case){"a device", SYS_read, 4096, {fds[0], 1 << 16, 8192}, MEND_REST});
	check(&(struct mend_case){
	    "all of it", SYS_read, 8192, {fds[0], 1 << 16, 8192}, MEND_NOTHING});
	check(&(struct mend_case){"a file", SYS_read, 4096, {fds[1], 1 << 16, 8192}, MEND_NOTHING});
	close(zero);
	fclose(file);
}

// The number of a 32-bit program's call means another one of ours: i386's getrandom is 355.
static void test_compat(void **state)
{
	struct syscall_caller caller = this_thread();

	(void)state;
	caller.compat = true;
	check_of(&caller, &(struct mend_case){
	                      "a part", SYS_getrandom, 300, {1 << 16, 1000, 0}, MEND_NOTHING});
	check_of(&caller, &(struct mend_case){"EINTR", SYS_getrandom, -EINTR, {0}, MEND_LEFT});
	assert_int_equal(syscall_mend_number(&caller, &(struct thread_registers){0}), -1);
}

// restart_syscall(2) is a call that a seccomp filter may not know.
static void test_restart(void **state)
{
	(void)state;
	check(&(struct mend_case){"to be restarted",
	                          SYS_nanosleep,
	                          -ERESTART_RESTARTBLOCK,
	                          {0},
	                          syscall_is_filtered(getpid()) ? MEND_AGAIN : MEND_NOTHING});
}

static void test_at_once(void **state)
{
	static const struct {
		struct mend_case call;
		bool is_again;
	} cases[] = {
	    {{"interrupted", SYS_epoll_wait, -EINTR, {0}, 0}, true},
	    {{"begins anew", SYS_fallocate, -EINTR, {0}, 0}, true},
	    {{"cannot be mended", SYS_close, -EINTR, {0}, 0}, false},
	    {{"a part: nobody stays for the rest", SYS_getrandom, 300, {0, 1000, 0}, 0}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct syscall_caller caller = this_thread();
		struct thread_registers thread;
		set_up(&cases[i].call, &thread);
		assert_int_equal(syscall_mend_at_once(&caller, &thread), cases[i].is_again);
		assert_int_equal(syscall_mend_resumes(&thread), cases[i].is_again);
	}
}

static void test_resumes(void **state)
{
	static const struct {
		int64_t number, result;
		bool resumes;
	} cases[] = {
	    {SYS_futex, -ERESTARTSYS, true}, {SYS_nanosleep, -ERESTART_RESTARTBLOCK, true},
	    {SYS_futex, -EINTR, false},      {SYS_futex, 0, false},
	    {NO_CALL, -ERESTARTSYS, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct thread_registers thread = {0};
		syscall_set(&thread, cases[i].number, cases[i].result);
		assert_int_equal(syscall_mend_resumes(&thread), cases[i].resumes);
	}
}

// What a part came to: all of its own, or all of the call's, ends; what moved nothing and was not
// interrupted, too. What is short on anything but a socket can only have been woken.
static void test_next_part(void **state)
{
	static const struct syscall_rest_rule rule = {.wish = WISH_ALL};
	static const struct syscall_row row = {.rest = &rule};
	static const struct {
		int64_t result;
		enum syscall_rest_next next;
	} cases[] = {{90, REST_ENDS},    {89, REST_GOES_ON}, {50, REST_GOES_ON},
	             {49, REST_GOES_ON}, {0, REST_ENDS},     {-EINTR, REST_GOES_ON}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct syscall_rest rest = {
		    .kind = REST_MORE, .total = 100, .done = 10, .part = 50, .row = &row};
		rest.caller = this_thread();
		assert_int_equal(syscall_rest_next(&rest, cases[i].result), cases[i].next);
	}
}

// A rest in more parts than anybody needs is given up, and that is told.
static void test_too_many_parts(void **state)
{
	static const struct syscall_rest_rule rule = {.wish = WISH_ALL};
	static const struct syscall_row row = {.rest = &rule};
	struct syscall_rest rest = {.kind = REST_MORE, .total = 100, .done = 10, .row = &row};
	struct thread_registers thread;
	unsigned int n = 0;

	(void)state;
	rest.caller = this_thread();
	while (n < 1000000 && syscall_rest_enter(&rest, &thread))
		n++;
	assert_in_range(n, 1000, 999999);
	assert_true(rest.is_left);
	rest.is_left = false;
	rest.kind = REST_WHOLE; // which the kernel begins again
	assert_false(syscall_rest_enter(&rest, &thread));
	assert_false(rest.is_left);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_without_descriptors),
	    cmocka_unit_test(test_compat),
	    cmocka_unit_test(test_descriptors),
	    cmocka_unit_test(test_restart),
	    cmocka_unit_test(test_at_once),
	    cmocka_unit_test(test_resumes),
	    cmocka_unit_test(test_next_part),
	    cmocka_unit_test(test_too_many_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

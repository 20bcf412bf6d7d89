#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "guard.h"
#include "memory.h"

static void do_nothing(void *context)
{
	++*(int *)context;
}

static void test_done(void **state)
{
	int calls = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(guard_run(do_nothing, &calls, NS_PER_SECOND), GUARD_DONE);
	assert_int_equal(calls, 100);
	assert_null(guard_end_text(GUARD_DONE));
}

static void read_nowhere(void *context)
{
	volatile const char *volatile nowhere = context;

	(void)*nowhere;
}

static void test_fault(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++) // once is not enough
		assert_int_equal(guard_run(read_nowhere, (void *)8, NS_PER_SECOND), GUARD_FAULT);
	assert_string_equal(guard_end_text(GUARD_FAULT), "its tables are damaged");
}

static void test_truncated(void **state)
{
	const int fd = memfd_create("truncated", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(fd, 8192), 0);
	char *bytes = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
	assert_int_equal(guard_run(read_nowhere, bytes + 4096, NS_PER_SECOND), GUARD_DONE);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(guard_run(read_nowhere, bytes + 4096, NS_PER_SECOND), GUARD_TRUNCATED);
	munmap(bytes, 8192);
	close(fd);
}

static void call_abort(void *context)
{
	(void)context;
	abort();
}

static void test_abort(void **state)
{
	(void)state;
	assert_int_equal(guard_run(call_abort, NULL, NS_PER_SECOND), GUARD_FAULT);
	assert_int_equal(guard_run(call_abort, NULL, NS_PER_SECOND), GUARD_FAULT);
}

// volatile: neither a loop nor removed.
static int recurse(volatile char *above, int depth)
{
	volatile char here[4096];

	here[0] = *above;
	return depth == 0 ? here[0] : recurse(here, depth - 1) + here[0];
}

static void recurse_for_ever(void *context)
{
	recurse(context, INT32_MAX);
}

static void test_endless_recursion(void **state)
{
	volatile char start = 0;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(guard_run(recurse_for_ever, (void *)&start, NS_PER_SECOND * 10),
		                 GUARD_FAULT);
}

static void wait_for_writer(void *context)
{
	const int fd = open(context, O_RDONLY | O_CLOEXEC); // waits until somebody writes

	if (fd >= 0)
		close(fd);
}

static void test_waiting_ends(void **state)
{
	char path[] = "/tmp/test_guard.XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(path));
	_cleanup_free_ char *pipe_path = memory_printf("%s/pipe", path);
	assert_int_equal(mkfifo(pipe_path, 0600), 0);
	const int64_t start_ns = clock_now_ns();
	assert_int_equal(guard_run(wait_for_writer, pipe_path, NS_PER_SECOND), GUARD_TIME);
	assert_in_range(clock_now_ns() - start_ns, GUARD_WAIT_NS, 10 * GUARD_WAIT_NS);
	unlink(pipe_path);
	rmdir(path);
}

// Our own code is not left in the midst of anything.
static void spin(void *context)
{
	const int64_t end_ns = clock_now_ns() + NS_PER_SECOND / 5;

	while (clock_now_ns() < end_ns)
		++*(uint64_t *)context;
}

static void test_own_code_ends_by_itself(void **state)
{
	uint64_t turns = 0;

	(void)state;
	assert_int_equal(guard_run(spin, &turns, NS_PER_MS), GUARD_DONE);
}

static void take_memory(void *context)
{
	guard_limit_memory(64 << 20);
	free(memory_alloc(32 << 20));
	++*(int *)context;
	free(memory_alloc(256 << 20));
	++*(int *)context;
}

static void test_memory(void **state)
{
	struct rlimit before, after;
	int steps = 0;

	(void)state;
#if defined(__SANITIZE_ADDRESS__)
	print_message("# memory is not limited where it is sanitized\n");
	return;
#endif
	getrlimit(RLIMIT_AS, &before);
	assert_int_equal(guard_run(take_memory, &steps, NS_PER_SECOND), GUARD_MEMORY);
	assert_int_equal(steps, 1);
	getrlimit(RLIMIT_AS, &after);
	assert_int_equal(before.rlim_cur, after.rlim_cur);
	free(memory_alloc(256 << 20));
}

struct nested {
	int before, after;
};

static void run_nested(void *context)
{
	struct nested *nested = context;

	nested->before++;
	guard_run(read_nowhere, (void *)8, NS_PER_SECOND);
	nested->after++;
}

static void test_nested(void **state)
{
	struct nested nested = {0};

	(void)state;
	assert_int_equal(guard_run(run_nested, &nested, NS_PER_SECOND), GUARD_FAULT);
	assert_int_equal(nested.before, 1);
	assert_int_equal(nested.after, 0);
}

// Faults outside of guarded work are as deadly as ever, and so are signals from outside.
static int status_of_child(void (*act)(void))
{
	int status;
	const pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		int calls = 0;
		const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		dup2(null, STDERR_FILENO); // what sanitizers say
		signal(SIGSEGV, SIG_DFL);  // instead of cmocka's
		signal(SIGABRT, SIG_DFL);
		guard_run(do_nothing, &calls, NS_PER_SECOND);
		act();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void fault(void)
{
	read_nowhere((void *)8);
}

static void send_fault(void)
{
	kill(getpid(), SIGSEGV);
}

static void test_other_faults_are_deadly(void **state)
{
	(void)state;
	assert_int_not_equal(status_of_child(fault), 0);
	assert_int_not_equal(status_of_child(send_fault), 0);
	assert_int_not_equal(status_of_child(abort), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_done),
	    cmocka_unit_test(test_fault),
	    cmocka_unit_test(test_truncated),
	    cmocka_unit_test(test_abort),
	    cmocka_unit_test(test_endless_recursion),
	    cmocka_unit_test(test_waiting_ends),
	    cmocka_unit_test(test_own_code_ends_by_itself),
	    cmocka_unit_test(test_memory),
	    cmocka_unit_test(test_nested),
	    cmocka_unit_test(test_other_faults_are_deadly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
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
#include <zlib.h>

#include "clock.h"
#include "guard.h"
#include "memory.h"
#include "unit.h"

// cmocka has handlers of its own for faults, and sets them anew for each test: what is tested runs
// in a child, before whose end its line says that all was as expected.
static int status_of_child(void (*act)(void))
{
	int status;
	const pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGABRT, SIG_DFL);
		act();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void check_in_child(void (*act)(void))
{
	assert_int_equal(status_of_child(act), 0);
}

// In the child.
static void expect(bool condition, int line)
{
	if (condition)
		return;
	print_message("# line %d\n", line);
	_exit(1);
}
#define EXPECT(condition) expect((condition), __LINE__)

static enum guard_end run(guard_work *work, void *context)
{
	int64_t left_ns = NS_PER_SECOND;

	return guard_run(work, context, &left_ns);
}

static void do_nothing(void *context)
{
	++*(int *)context;
}

static void check_done(void)
{
	int calls = 0;

	for (int i = 0; i < 100; i++)
		EXPECT(run(do_nothing, &calls) == GUARD_DONE);
	EXPECT(calls == 100);
}

static void read_nowhere(void *context)
{
	volatile const char *volatile nowhere = context;

	(void)*nowhere;
}

static void check_fault(void)
{
	for (int i = 0; i < 10; i++) // once is not enough
		EXPECT(run(read_nowhere, (void *)8) == GUARD_FAULT);
}

static void check_truncated(void)
{
	const int fd = memfd_create("truncated", MFD_CLOEXEC);

	EXPECT(ftruncate(fd, 8192) == 0);
	char *bytes = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
	EXPECT(run(read_nowhere, bytes + 4096) == GUARD_DONE);
	EXPECT(ftruncate(fd, 4096) == 0);
	EXPECT(run(read_nowhere, bytes + 4096) == GUARD_TRUNCATED);
}

static void call_abort(void *context)
{
	(void)context;
	abort();
}

static void check_abort(void)
{
	for (int i = 0; i < 3; i++)
		EXPECT(run(call_abort, NULL) == GUARD_FAULT);
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

// Where a machine is so busy that a timer's next signal is there before the handler of the last one
// has got a CPU, they must not fill the handlers' stack. And once the work is left, they come
// again.
static void check_signals_do_not_pile_up(void)
{
	const int numbers[] = {SIGRTMIN + 8, SIGRTMIN + 9, SIGSEGV, SIGBUS};
	struct sigaction action;
	sigset_t blocked;

	EXPECT(run(read_nowhere, (void *)8) == GUARD_FAULT);
	for (size_t i = 0; i < array_size(numbers); i++) {
		EXPECT(sigaction(numbers[i], NULL, &action) == 0);
		EXPECT(sigismember(&action.sa_mask, SIGRTMIN + 8));
		EXPECT(sigismember(&action.sa_mask, SIGRTMIN + 9));
	}
	sigprocmask(SIG_BLOCK, NULL, &blocked);
	EXPECT(!sigismember(&blocked, SIGRTMIN + 8) && !sigismember(&blocked, SIGRTMIN + 9));
}

static void check_endless_recursion(void)
{
	volatile char start = 0;

	for (int i = 0; i < 3; i++)
		EXPECT(run(recurse_for_ever, (void *)&start) == GUARD_FAULT);
}

static void wait_for_writer(void *context)
{
	guard_opens_files(0);
	const int fd = open(context, O_RDONLY | O_CLOEXEC); // waits until somebody writes

	if (fd >= 0)
		close(fd);
}

// From here on no timer of timer_create(2) can be made.
static void use_up_queue(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	timer_t timer;

	EXPECT(setrlimit(RLIMIT_SIGPENDING, &(struct rlimit){0}) == 0);
	EXPECT(timer_create(CLOCK_MONOTONIC, &event, &timer) != 0);
}

static void expect_success(pid_t child, int line)
{
	int status;

	expect(waitpid(child, &status, 0) == child && status == 0, line);
}

static void check_waiting_ends(void)
{
	const pid_t child = fork();
	char path[] = "/tmp/test_guard.XXXXXX";

	if (child == 0)
		use_up_queue();
	EXPECT(mkdtemp(path) != NULL);
	_cleanup_free_ char *pipe_path = memory_printf("%s/pipe", path);
	EXPECT(mkfifo(pipe_path, 0600) == 0);
	const int64_t start_ns = clock_now_ns();
	EXPECT(run(wait_for_writer, pipe_path) == GUARD_TIME);
	EXPECT(clock_now_ns() - start_ns >= GUARD_WAIT_NS);
	EXPECT(clock_now_ns() - start_ns < 10 * GUARD_WAIT_NS);
	unlink(pipe_path);
	rmdir(path);
	if (child == 0)
		_exit(0);
	expect_success(child, __LINE__);
}

// Our own code is not left in the midst of anything.
static void spin(void *context)
{
	const int64_t end_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) + NS_PER_SECOND / 2;

	while (clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) < end_ns)
		++*(uint64_t *)context;
}

static void check_own_code_ends_by_itself(void)
{
	uint64_t turns = 0;
	int64_t left_ns = NS_PER_MS;

	EXPECT(guard_run(spin, &turns, &left_ns) == GUARD_DONE);
	EXPECT(left_ns < 0);
}

#if !defined(__SANITIZE_ADDRESS__)
static void take_memory(void *context)
{
	guard_opens_files(64 << 20);
	free(memory_alloc(32 << 20));
	++*(int *)context;
	free(memory_alloc(256 << 20));
	++*(int *)context;
}

static void check_memory(void)
{
	struct rlimit before, after;
	int steps = 0;

	getrlimit(RLIMIT_AS, &before);
	EXPECT(run(take_memory, &steps) == GUARD_MEMORY);
	EXPECT(steps == 1);
	getrlimit(RLIMIT_AS, &after);
	EXPECT(before.rlim_cur == after.rlim_cur);
	free(memory_alloc(256 << 20));
}
#endif

struct nested {
	int before, after;
};

static void run_nested(void *context)
{
	struct nested *nested = context;

	nested->before++;
	run(read_nowhere, (void *)8);
	nested->after++;
}

static void check_nested(void)
{
	struct nested nested = {0};

	EXPECT(run(run_nested, &nested) == GUARD_FAULT);
	EXPECT(nested.before == 1);
	EXPECT(nested.after == 0);
}

// Reads text by libz without end: a helper of libdw's, which may be left.
static void inflate_for_ever(void *context)
{
	static unsigned char bytes[1 << 16];

	for (;;)
		*(uLong *)context = crc32(*(uLong *)context, bytes, sizeof(bytes));
}

static void check_time(void)
{
	uLong sum = 0;

	for (int i = 0; i < 3; i++) {
		int64_t left_ns = NS_PER_SECOND / 5;
		EXPECT(guard_run(inflate_for_ever, &sum, &left_ns) == GUARD_TIME);
	}
}

static void check_time_without_queue(void)
{
	use_up_queue();
	check_time();
}

// A fork's child has the handlers, and no timers yet.
static void check_time_of_child(void)
{
	int calls = 0;

	EXPECT(run(do_nothing, &calls) == GUARD_DONE);
	const pid_t child = fork();
	if (child == 0) {
		alarm(60);
		check_time();
		_exit(0);
	}
	expect_success(child, __LINE__);
}

static void send_signals(void *context)
{
	for (int i = 0; i < 100; i++) // each would count as a tenth of a second
		kill(getpid(), SIGRTMIN + 8);
	++*(int *)context;
}

static void check_signals_of_others(void)
{
	int64_t left_ns = NS_PER_SECOND;
	int calls = 0;

	EXPECT(guard_run(send_signals, &calls, &left_ns) == GUARD_DONE);
	EXPECT(calls == 1);
	EXPECT(left_ns > 0);
}

// Faults outside of guarded work are as deadly as ever, and so are signals from outside.
static void use_guard(void)
{
	int calls = 0;
	const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	dup2(null, STDERR_FILENO); // what sanitizers say
	run(do_nothing, &calls);
}

static void fault(void)
{
	use_guard();
	read_nowhere((void *)8);
}

static void send_fault(void)
{
	use_guard();
	kill(getpid(), SIGSEGV);
}

static void abort_outside(void)
{
	use_guard();
	abort();
}

static void send_timers_signal(void)
{
	use_guard();
	kill(getpid(), SIGVTALRM);
}

static void test_other_faults_are_deadly(void **state)
{
	(void)state;
	assert_int_not_equal(status_of_child(fault), 0);
	assert_int_not_equal(status_of_child(send_fault), 0);
	assert_int_not_equal(status_of_child(abort_outside), 0);
	assert_int_not_equal(status_of_child(send_timers_signal), 0);
}

static void test_texts(void **state)
{
	(void)state;
	assert_null(guard_end_text(GUARD_DONE));
	for (int end = GUARD_TRUNCATED; end <= GUARD_MEMORY; end++)
		assert_true(strlen(guard_end_text(end)) > 10);
}

#define CHECK(name)                                                                                \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		check_in_child(check_##name);                                                      \
	}
CHECK(done)
CHECK(fault)
CHECK(truncated)
CHECK(abort)
CHECK(signals_do_not_pile_up)
CHECK(endless_recursion)
CHECK(waiting_ends)
CHECK(own_code_ends_by_itself)
CHECK(time)
CHECK(time_without_queue)
CHECK(time_of_child)
CHECK(signals_of_others)
#if !defined(__SANITIZE_ADDRESS__) // there memory is not limited
CHECK(memory)
#endif
CHECK(nested)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_done),
		cmocka_unit_test(test_fault),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_abort),
		cmocka_unit_test(test_signals_do_not_pile_up),
		cmocka_unit_test(test_endless_recursion),
		cmocka_unit_test(test_waiting_ends),
		cmocka_unit_test(test_own_code_ends_by_itself),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_time_without_queue),
		cmocka_unit_test(test_time_of_child),
		cmocka_unit_test(test_signals_of_others),
#if !defined(__SANITIZE_ADDRESS__)
		cmocka_unit_test(test_memory),
#endif
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_other_faults_are_deadly),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// thread_sums: what the kernel adds up for a process, beside what it shows of each thread.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"
#include "thread_sums.h"
#include "unit.h"

enum { N_THREADS = 8, N_WAKES = 20 };

static struct thread_sums sums;

static int open_sums(void **state)
{
	(void)state;
	thread_sums_init(&sums);
	return 0;
}

static int close_sums(void **state)
{
	(void)state;
	thread_sums_deinit(&sums);
	return 0;
}

static void need_sums(void)
{
	if (!thread_sums_are_known(&sums)) {
		print_message("# needs CAP_NET_ADMIN and the kernel's taskstats\n");
		skip();
	}
}

static struct proc_schedstat read_sums(int pid)
{
	struct proc_schedstat sum;

	assert_true(thread_sums_read(&sums, pid, &sum));
	return sum;
}

// A child of threads that wait for bytes; the one who gets 's' spins from then on.
struct crowd {
	int pid, wake_fd, seen_fd;
	int tids[N_THREADS];
};

static int wake[2], seen[2];

static void *serve(void *argument)
{
	const int tid = (int)syscall(SYS_gettid);
	char byte;

	if (write(seen[1], &tid, sizeof(tid)) != sizeof(tid))
		_exit(1);
	while (read(wake[0], &byte, 1) == 1) {
		if (write(seen[1], &tid, sizeof(tid)) != sizeof(tid))
			_exit(1);
		while (byte == 's')
			atomic_signal_fence(memory_order_seq_cst);
	}
	return argument;
}

static int read_tid(const struct crowd *crowd)
{
	int tid;

	assert_int_equal(read(crowd->seen_fd, &tid, sizeof(tid)), sizeof(tid));
	return tid;
}

// Waits until nothing of it has run for a while.
static struct proc_schedstat settle(const struct crowd *crowd)
{
	struct proc_schedstat last = read_sums(crowd->pid), sum;

	for (;;) {
		usleep(20000);
		sum = read_sums(crowd->pid);
		if (sum.runs == last.runs)
			return sum;
		last = sum;
	}
}

static void start(struct crowd *ret)
{
	assert_int_equal(pipe(wake) | pipe(seen), 0);
	ret->pid = fork();
	if (ret->pid == 0) {
		pthread_t thread;
		alarm(60);
		for (int i = 1; i < N_THREADS; i++)
			if (pthread_create(&thread, NULL, serve, NULL))
				_exit(1);
		serve(NULL);
		_exit(0);
	}
	ret->wake_fd = wake[1];
	ret->seen_fd = seen[0];
	for (int i = 0; i < N_THREADS; i++)
		ret->tids[i] = read_tid(ret);
}

static void end(struct crowd *crowd)
{
	kill(crowd->pid, SIGKILL);
	assert_int_equal(waitpid(crowd->pid, NULL, 0), crowd->pid);
	for (int i = 0; i < 2; i++) {
		close(wake[i]);
		close(seen[i]);
	}
}

static void test_the_threads_together(void **state)
{
	struct crowd crowd;
	uint64_t delay_ns = 0, runs = 0;

	(void)state;
	need_sums();
	start(&crowd);
	const struct proc_schedstat sum = settle(&crowd);
	for (int i = 0; i < N_THREADS; i++) {
		struct proc_schedstat one;
		assert_true(proc_read_schedstat(-1, crowd.pid, crowd.tids[i], &one));
		delay_ns += one.delay_ns;
		runs += one.runs;
	}
	assert_int_equal(sum.runs, runs);
	assert_int_equal(sum.delay_ns, delay_ns);
	end(&crowd);
}

static void test_each_run_counts(void **state)
{
	struct crowd crowd;

	(void)state;
	need_sums();
	start(&crowd);
	const struct proc_schedstat before = settle(&crowd);
	for (int i = 0; i < N_WAKES; i++) {
		assert_int_equal(write(crowd.wake_fd, "w", 1), 1);
		read_tid(&crowd);
	}
	assert_in_range(settle(&crowd).runs, before.runs + 1, UINT64_MAX);
	end(&crowd);
}

// At once, and not only when its time is accounted for.
static void test_one_that_runs(void **state)
{
	(void)state;
	need_sums();
	for (int i = 0; i < N_WAKES; i++) {
		struct crowd crowd;
		start(&crowd);
		const struct proc_schedstat before = settle(&crowd);
		assert_int_equal(write(crowd.wake_fd, "s", 1), 1);
		read_tid(&crowd);
		assert_in_range(read_sums(crowd.pid).runs, before.runs + 1, UINT64_MAX);
		end(&crowd);
	}
}

static void test_no_process(void **state)
{
	struct proc_schedstat sum;

	(void)state;
	assert_false(thread_sums_read(&sums, 0x7ffffffe, &sum));
	// The socket answers on.
	assert_int_equal(thread_sums_read(&sums, getpid(), &sum), thread_sums_are_known(&sums));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_threads_together),
	    cmocka_unit_test(test_each_run_counts),
	    cmocka_unit_test(test_one_that_runs),
	    cmocka_unit_test(test_no_process),
	};
	return cmocka_run_group_tests(tests, open_sums, close_sums);
}

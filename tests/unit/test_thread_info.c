// SPDX-License-Identifier: MIT
// thread_info: when names are read, and of whom; and what a new thread has used already.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "memory.h"
#include "profile.h"
#include "target.h"
#include "thread_info.h"
#include "unit.h"

enum { MS = 1000000, FORK_TRIES = 1000 };

static struct profile profile;
static struct target_thread thread;
static struct target target;

// The process is first seen in a tick that stands for the time since begin_ns.
static void first_see_process(int pid, int64_t begin_ns)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	profile = (struct profile){0};
	thread = (struct target_thread){.tid = pid};
	target = (struct target){.pid = pid, .task_fd = open(path, O_RDONLY | O_CLOEXEC)};
	*array_push(target.threads, target.n_threads, target.threads_capacity) = &thread;
	thread_info_begin_process(&profile, &target, begin_ns);
	thread_info_add(&profile, &target, target.n_threads, begin_ns);
}

static void first_see(int64_t begin_ns)
{
	prctl(PR_SET_NAME, "first");
	first_see_process(getpid(), begin_ns);
}

static const char *name_at(int64_t now_ns)
{
	thread_info_refresh_name(&profile, &target, target.threads[0], now_ns);
	return profile_process_name(&profile, target.pid);
}

static int free_all(void **state)
{
	(void)state;
	close(target.task_fd);
	free(target.threads);
	profile_deinit(&profile);
	return 0;
}

// It is read again when the process is about twice as old as it was the last time.
static void test_renamed(void **state)
{
	(void)state;
	first_see(0);
	assert_string_equal(name_at(4 * MS), "first");
	prctl(PR_SET_NAME, "second");
	assert_string_equal(name_at(4 * MS), "first");
	assert_string_equal(name_at(5 * MS), "second");
	prctl(PR_SET_NAME, "third");
	assert_string_equal(name_at(14 * MS), "second");
	assert_string_equal(name_at(15 * MS), "third");
}

// Another program has another name at once, and may soon choose another one.
static void test_executed(void **state)
{
	(void)state;
	first_see(0);
	assert_string_equal(name_at(1 * MS), "first");
	prctl(PR_SET_NAME, "second");
	thread_info_note_exec(&profile, &target, 400 * MS);
	assert_string_equal(profile_process_name(&profile, target.pid), "second");
	assert_string_equal(profile.threads[0].name, "second");
	assert_false(thread.asked_name);
	prctl(PR_SET_NAME, "third");
	assert_string_equal(name_at(404 * MS), "second");
	assert_string_equal(name_at(405 * MS), "third");
}

static void test_read_each_second_in_the_end(void **state)
{
	int64_t now_ns = 0;

	(void)state;
	first_see(0);
	for (; now_ns < 10000LL * MS; now_ns += MS)
		name_at(now_ns);
	prctl(PR_SET_NAME, "second");
	name_at(now_ns + 1000LL * MS);
	assert_string_equal(name_at(now_ns + 1000LL * MS), "second");
}

// The process was born in a pause of the sampler's: it may be young.
static void test_born_in_a_pause(void **state)
{
	(void)state;
	first_see(0);
	assert_string_equal(name_at(900LL * MS), "first");
	assert_string_equal(name_at(904LL * MS), "first");
	prctl(PR_SET_NAME, "second");
	assert_string_equal(name_at(920LL * MS), "second");
}

// Forks a process of that name, which waits to be killed: by the end of a failed test, too.
static int begin_process(const char *name)
{
	char ready;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	const int pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, name);
		ready = write(fds[1], "", 1) == 1;
		pause();
		_exit(ready);
	}
	assert_int_equal(read(fds[0], &ready, 1), 1);
	close(fds[0]);
	close(fds[1]);
	return pid;
}

static void end_process(int pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

// True if the next process may get that pid: others may be faster.
static bool ask_for_pid(int pid)
{
	const int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	const bool done = fd >= 0 && dprintf(fd, "%d", pid - 1) > 0;

	if (fd >= 0)
		close(fd);
	return done;
}

// A process that has ended keeps its name, though another one has its pid since.
static void test_pid_used_again(void **state)
{
	const int pid = begin_process("first");
	int other = 0;

	(void)state;
	first_see_process(pid, 0);
	assert_string_equal(name_at(4 * MS), "first");
	end_process(pid);
	if (!ask_for_pid(pid))
		skip(); // nobody but root may ask
	for (int i = 0; i < FORK_TRIES && other != pid; i++) {
		ask_for_pid(pid);
		other = begin_process("second");
		if (other != pid)
			end_process(other);
	}
	assert_int_equal(other, pid);
	assert_string_equal(name_at(5 * MS), "first");
	end_process(pid);
}

// Returns the CPU time that counts of a thread that has used used_ns when it is found, in a tick
// for the time since since_ns.
static int64_t counted_ns(int64_t start_ns, int64_t since_ns, int64_t used_ns)
{
	profile = (struct profile){.start_ns = start_ns};
	thread = (struct target_thread){
	    .tid = getpid(), .has_schedstat = true, .last = {.cpu_ns = (uint64_t)used_ns}};
	target = (struct target){.pid = getpid(), .task_fd = -1};
	*array_push(target.threads, target.n_threads, target.threads_capacity) = &thread;
	thread_info_add(&profile, &target, 1, since_ns);
	const int64_t counted_ns = profile.threads[0].kernel_cpu_ns;
	free(target.threads);
	profile_deinit(&profile);
	return counted_ns;
}

// What a thread used since the last tick counts. An older one has used more than the time since
// then, or is found in the first tick.
static void test_used_before_it_was_found(void **state)
{
	const int64_t now_ns = clock_now_ns(), since_ns = now_ns - 100LL * MS;

	(void)state;
	assert_int_equal(counted_ns(since_ns - MS, since_ns, 5 * MS), 5 * MS);
	assert_int_equal(counted_ns(since_ns - MS, since_ns, 3600000LL * MS), 0);
	assert_int_equal(counted_ns(since_ns, since_ns, 5 * MS), 0);
	assert_int_equal(counted_ns(0, since_ns, 5 * MS), 0); // before the first tick
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(test_renamed, free_all),
	    cmocka_unit_test_teardown(test_executed, free_all),
	    cmocka_unit_test_teardown(test_read_each_second_in_the_end, free_all),
	    cmocka_unit_test_teardown(test_born_in_a_pause, free_all),
	    cmocka_unit_test_teardown(test_pid_used_again, free_all),
	    cmocka_unit_test(test_used_before_it_was_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// The memory of a process and all that it started, which is freed without the process itself.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent_memory.h"

enum { BYTES = 32 << 20, PATIENCE_S = 60 };

// Has that memory until it is killed.
static void take_memory(int ready_fd)
{
	void *memory =
	    mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	alarm(PATIENCE_S);
	if (memory != MAP_FAILED && memset(memory, 1, BYTES) && write(ready_fd, "x", 1) == 1)
		pause();
	_exit(1);
}

// Is as a sampler's supervisor, whose worker has a child of its own. 0: both have been killed.
static int supervise(int ready_fd)
{
	int status = 0;
	const pid_t worker = fork();

	if (worker == 0) {
		if (fork() == 0)
			take_memory(ready_fd);
		take_memory(ready_fd);
	}
	return waitpid(worker, &status, 0) == worker && WIFSIGNALED(status) &&
	               WTERMSIG(status) == SIGKILL
	           ? 0
	           : 1;
}

static void test_sampler(void **state)
{
	int fds[2], status;
	char byte;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	const pid_t child = fork();
	if (child == 0)
		_exit(supervise(fds[1]));
	close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	assert_true(agent_memory_of(child) >= 2 * (uint64_t)BYTES);
	agent_memory_free(child);
	assert_int_equal(read(fds[0], &byte, 1), 0); // nobody has the other end any more
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(agent_memory_of(child), 0);
	close(fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_sampler)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
// The memory of a process and all that it started.
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent_cost.h"
#include "unit.h"

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

static void test_sampler(void **state)
{
	int fds[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	const pid_t child = fork();
	if (child == 0) {
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			take_memory(fds[1]);
		}
		take_memory(fds[1]);
	}
	assert_int_equal(read(fds[0], &byte, 1), 1);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	assert_true(agent_memory_of(child) >= 2 * (uint64_t)BYTES);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(agent_memory_of(child), 0);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_sampler)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

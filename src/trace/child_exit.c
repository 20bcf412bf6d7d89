// SPDX-License-Identifier: MIT
#include "child_exit.h"

#include <sys/wait.h>

static int child_pid, child_status;
static bool has_ended;

void child_exit_watch(int pid)
{
	child_pid = pid;
	has_ended = false;
}

void child_exit_note(int pid, int status)
{
	if (pid != child_pid || WIFSTOPPED(status))
		return;
	has_ended = true;
	child_status = status;
}

bool child_exit_is_known(int *ret_status)
{
	if (has_ended)
		*ret_status = child_status;
	return has_ended;
}

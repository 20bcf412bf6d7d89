// SPDX-License-Identifier: MIT
#include "first_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"

bool first_process_is(void)
{
	return getpid() == 1;
}

// What the kernel sends for a fault of our own is left out.
void first_process_await(sigset_t *awaited)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};

	if (!first_process_is())
		return;
	sigfillset(awaited);
	for (size_t i = 0; i < array_size(faults); i++)
		sigdelset(awaited, faults[i]);
	sigprocmask(SIG_BLOCK, awaited, NULL);
}

// Nobody outside has a pid of this namespace.
bool first_process_pass(struct first_process *first, int number, int code, pid_t pid)
{
	const int command = first->command ? *first->command : -1;

	if (!first_process_is() || code != SI_USER || pid != 0 || command < 0)
		return false;
	if (command == 0)
		return sigaddset(&first->early, number) == 0;
	return kill(command, number) == 0;
}

bool first_process_pass_early(struct first_process *first)
{
	const int command = first->command ? *first->command : -1;

	if (sigisemptyset(&first->early))
		return false;
	if (command == 0)
		return true;
	for (int number = 1; command > 0 && number <= SIGRTMAX; number++)
		if (sigismember(&first->early, number) == 1)
			kill(command, number);
	sigemptyset(&first->early);
	return false;
}

pid_t first_process_ended_child(void)
{
	siginfo_t info = {0};

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 ? info.si_pid : 0;
}

// SPDX-License-Identifier: MIT
#include "tracee_registers.h"

#include <sys/ptrace.h>

#include "syscall_registers.h"

bool tracee_registers_get(int tid, struct thread_registers *ret)
{
	// Not PTRACE_GETREGSET, which shows a thread in 32-bit code in that one's form.
	return ptrace(PTRACE_GETREGS, tid, NULL, &ret->user) == 0;
}

bool tracee_registers_set(int tid, const struct thread_registers *thread)
{
	struct thread_registers copy = *thread;

	return ptrace(PTRACE_SETREGS, tid, NULL, &copy.user) == 0;
}

// Kernels before 5.3 do not tell whether it is a compat call.
struct syscall_caller tracee_registers_caller(int tid, int pid)
{
	struct __ptrace_syscall_info info;
	const long size = ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof(info), &info);

	return (struct syscall_caller){
	    .tid = tid,
	    .pid = pid,
	    .compat = size > 0 && syscall_is_compat_arch(info.arch),
	};
}

bool tracee_registers_put_code(int tid, uint64_t address, const uint64_t *words, size_t n)
{
	bool done = true;

	for (size_t i = 0; i < n; i++)
		done &= ptrace(PTRACE_POKETEXT, tid, (void *)(address + i * sizeof(*words)),
		               (void *)words[i]) == 0;
	return done;
}

// SPDX-License-Identifier: MIT
#include "tracee_registers.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

bool tracee_registers_get(int tid, struct user_regs_struct *ret)
{
	struct iovec vector = {.iov_base = ret, .iov_len = sizeof(*ret)};

	// A 32-bit thread fills less.
	return ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &vector) == 0 &&
	       vector.iov_len == sizeof(*ret);
}

bool tracee_registers_set(int tid, const struct user_regs_struct *user)
{
	struct user_regs_struct registers = *user;
	struct iovec vector = {.iov_base = &registers, .iov_len = sizeof(registers)};

	return ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &vector) == 0;
}

// SPDX-License-Identifier: MIT
#include "signal_context.h"

#include <errno.h>
#include <string.h>
#include <ucontext.h>

uintptr_t signal_context_pc(const void *context)
{
	return ((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

// True if the instruction before the pc is "syscall".
bool signal_context_ends_call(const void *context)
{
	const ucontext_t *machine = context;

	return machine->uc_mcontext.gregs[REG_RAX] == -EINTR &&
	       memcmp((const void *)(signal_context_pc(context) - 2), "\x0f\x05", 2) == 0;
}

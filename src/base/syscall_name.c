// SPDX-License-Identifier: MIT
#include "syscall_name.h"

#include "memory.h"

static const char *const names[SYSCALL_MAX_NUMBER + 1] = {
#include "syscall_names.h" // by syscall_names.py
};

char *syscall_name(int number)
{
	if (number >= 0 && number <= SYSCALL_MAX_NUMBER && names[number])
		return memory_strdup(names[number]);
	return memory_printf("syscall_%d", number);
}

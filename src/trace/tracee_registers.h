// SPDX-License-Identifier: MIT
// tracee_registers: the registers of a thread that stands in a stop of ours.
#pragma once

#include <stdbool.h>

struct thread_registers;

// False: it does not stand still, or is a 32-bit program's.
bool tracee_registers_get(int tid, struct thread_registers *ret);

bool tracee_registers_set(int tid, const struct thread_registers *thread);

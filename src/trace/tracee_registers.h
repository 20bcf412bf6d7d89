// SPDX-License-Identifier: MIT
// tracee_registers: reads and writes the registers of a thread that is in a stop of ours.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "syscall_rest.h"

struct thread_registers;

// Reads the registers, in their 64-bit form also where the thread executes 32-bit code. False if it
// is not stopped.
bool tracee_registers_get(int tid, struct thread_registers *ret);

bool tracee_registers_set(int tid, const struct thread_registers *thread);

// Returns whose call it is, of thread `tid` of process `pid`.
struct syscall_caller tracee_registers_caller(int tid, int pid);

// Writes words over the code that it executes, which no other process shares (privileged_exec.h).
bool tracee_registers_put_code(int tid, uint64_t address, const uint64_t *words, size_t n);

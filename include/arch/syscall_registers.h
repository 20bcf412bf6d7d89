// SPDX-License-Identifier: MIT
// syscall_registers: the registers of a thread that stands in a stop, and what they say of its
// system call. Each architecture has its own syscall_registers.c.
//
// Compat: the calls of 32-bit programs, which a 64-bit thread may make as well. They have numbers
// and argument registers of their own.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

struct registers; // arch.h

enum { SYSCALL_ARGUMENTS = 6, SYSCALL_MAX_CODE_BYTES = 4, EXECVE_CODE_WORDS = 3 };

// As NT_PRSTATUS of PTRACE_GETREGSET and PTRACE_SETREGSET has them.
struct thread_registers {
	struct user_regs_struct user;
};

// All registers, by DWARF's numbers.
void thread_registers_read(const struct thread_registers *thread, struct registers *ret);

// The thread pointer, from which thread-local variables are found.
uint64_t thread_registers_tls(const struct thread_registers *thread);

// The number of the call that the thread is in; less than 0: in none.
int64_t syscall_number(const struct thread_registers *thread);

// Makes the registers those of a thread in that call, which has come to that result.
void syscall_set(struct thread_registers *thread, int64_t number, int64_t result);

// What the call returns; -errno for an error.
int64_t syscall_result(const struct thread_registers *thread);

// Argument `number`, counted from 1.
uint64_t syscall_argument(const struct thread_registers *thread, bool compat, unsigned int number);
void syscall_set_argument(struct thread_registers *thread, bool compat, unsigned int number,
                          uint64_t value);

// Has the kernel begin the thread's call again, with the same arguments, unless a signal with a
// handler has come meanwhile: then the program sees EINTR, as without us.
void syscall_begin_again(struct thread_registers *thread);

// True if the kernel has been told, by the result, how the interrupted call is to go on: to be
// begun again, or to end with EINTR. It has not decided yet.
bool syscall_was_interrupted(int64_t result);

// True if the call would be continued by restart_syscall(2).
bool syscall_needs_restart_syscall(const struct thread_registers *thread);

// Sets the thread, which has just returned from a call, back to that call's instruction, to make
// call `number` there. Its arguments are the caller's to set.
void syscall_step_back(struct thread_registers *thread, int64_t number);

// Has the thread go on behind its call with that result, and leaves the kernel nothing to restart.
void syscall_end(struct thread_registers *thread, int64_t result);

// True if the thread, which was sent on with the registers `entered` (by syscall_step_back), is
// about to make that call, or is in it, or has just returned from it. *ret_has_begun: it is not
// just about to.
bool syscall_is_inside(const struct thread_registers *thread,
                       const struct thread_registers *entered, bool *ret_has_begun);

// True if the register of the result may hold the call's number instead: the kernel sets a thread
// back so whose call is to begin again.
bool syscall_result_may_be_number(const struct thread_registers *thread);

// The instruction that makes system calls: how long it is, and where the last one ended.
size_t syscall_code_bytes(void);
uint64_t syscall_code_end(const struct thread_registers *thread);
// True if `code`, of syscall_code_bytes(), is such an instruction; or one that makes a compat call.
bool syscall_is_code(const uint8_t *code);
bool syscall_is_compat_code(const uint8_t *code);

// True if AUDIT_ARCH_* (PTRACE_GET_SYSCALL_INFO) means compat calls.
bool syscall_is_compat_arch(uint32_t audit_arch);

// The number, among this architecture's own, of compat call `number`; -1: not one that
// syscall_table has a use for, or one whose arguments are others.
int syscall_from_compat(int64_t number);
// True if that call stands for several, of which this one has a timeout.
bool syscall_compat_has_timeout(int64_t number, const uint64_t arguments[SYSCALL_ARGUMENTS]);

// For a thread at the first instruction of a program: the stack pointer, as the kernel has left
// it, and the address of that instruction.
uint64_t thread_registers_sp(const struct thread_registers *thread);
uint64_t thread_registers_pc(const struct thread_registers *thread);

// Code that executes a program by execve(2) and, should that fail, exits with status 126 as a shell
// would, and the registers for it.
void thread_registers_execve(struct thread_registers *thread, uint64_t path, uint64_t argv,
                             uint64_t envp, uint64_t ret_code[EXECVE_CODE_WORDS]);

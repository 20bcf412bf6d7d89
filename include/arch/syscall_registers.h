// SPDX-License-Identifier: MIT
// syscall_registers: reads and sets the registers of a stopped thread, as far as they concern its
// system call. Each architecture has its own syscall_registers.c.
//
// Compat calls are the calls of 32-bit programs, which a 64-bit thread may also make. They have
// their own numbers and argument registers, which nothing here knows.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

struct registers; // arch.h

enum { SYSCALL_ARGUMENTS = 6, SYSCALL_MAX_CODE_BYTES = 4, EXECVE_CODE_WORDS = 3 };

// In the form of NT_PRSTATUS of PTRACE_GETREGSET and PTRACE_SETREGSET.
struct thread_registers {
	struct user_regs_struct user;
};

// Reads all registers, by DWARF's numbers.
void thread_registers_read(const struct thread_registers *thread, struct registers *ret);

// True if the thread executes 32-bit code, in a program of 32 bits or not.
bool thread_registers_are_32_bit(const struct thread_registers *thread);

// Returns the thread pointer, from which thread-local variables are found.
uint64_t thread_registers_tls(const struct thread_registers *thread);

// Returns the number of the call that the thread is in; less than 0: it is in none.
int64_t syscall_number(const struct thread_registers *thread);

// Makes the registers those of a thread in that call, with that result.
void syscall_set(struct thread_registers *thread, int64_t number, int64_t result);

// Returns the call's result; -errno for an error.
int64_t syscall_result(const struct thread_registers *thread);

// Returns, or sets, argument `number`, counted from 1.
uint64_t syscall_argument(const struct thread_registers *thread, unsigned int number);
void syscall_set_argument(struct thread_registers *thread, unsigned int number, uint64_t value);

// Makes the kernel begin the thread's call again, with the same arguments, unless a signal with a
// handler has come meanwhile: then the program sees EINTR, as it would without us.
void syscall_begin_again(struct thread_registers *thread);

// True if the result tells the kernel how to continue the interrupted call: to begin it again, or
// to end it with EINTR. The kernel has not decided yet.
bool syscall_was_interrupted(int64_t result);

// True if the call would be continued by restart_syscall(2).
bool syscall_needs_restart_syscall(const struct thread_registers *thread);

// Sets the thread, which has just returned from a call, back to that call's instruction, to make
// call `number` there. The caller sets its arguments.
void syscall_step_back(struct thread_registers *thread, int64_t number);

// Makes the thread go on after its call with that result, and leaves the kernel nothing to restart.
void syscall_end(struct thread_registers *thread, int64_t result);

// True if the thread, which was sent on with the registers `entered` (by syscall_step_back), is
// about to make that call, is in it, or has just returned from it. *ret_has_begun: it is not just
// about to.
bool syscall_is_inside(const struct thread_registers *thread,
                       const struct thread_registers *entered, bool *ret_has_begun);

// True if the register of the result may hold the call's number instead: the kernel sets it so for
// a thread whose call is to begin again.
bool syscall_result_may_be_number(const struct thread_registers *thread);

// Describe the instruction that makes system calls: how long it is, and where the last one ended.
size_t syscall_code_bytes(void);
uint64_t syscall_code_end(const struct thread_registers *thread);
// True if `code`, of syscall_code_bytes(), is such an instruction; or one that makes a compat call.
bool syscall_is_code(const uint8_t *code);
bool syscall_is_compat_code(const uint8_t *code);

// True if AUDIT_ARCH_* (PTRACE_GET_SYSCALL_INFO) means compat calls.
bool syscall_is_compat_arch(uint32_t audit_arch);

// For a thread at the first instruction of a program: return the stack pointer, as the kernel has
// left it, and the address of that instruction.
uint64_t thread_registers_sp(const struct thread_registers *thread);
uint64_t thread_registers_pc(const struct thread_registers *thread);

// Make the code that executes a program with execve(2) and, if that fails, exits with status 126 as
// a shell would, and the registers for it.
void thread_registers_execve(struct thread_registers *thread, uint64_t path, uint64_t argv,
                             uint64_t envp, uint64_t ret_code[EXECVE_CODE_WORDS]);

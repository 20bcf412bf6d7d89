// SPDX-License-Identifier: MIT
#include "syscall_registers.h"

#include <errno.h>
#include <linux/audit.h>
#include <string.h>

#include "arch.h"
#include "x86_registers.h"

enum {
	CODE_BYTES = 2, // of syscall (0f 05) and of int $0x80 (cd 80)

	CODE_SEGMENT_OF_32_BITS = 0x23, // __USER32_CS, in arch/x86/include/asm/segment.h

	// From the kernel's linux/errno.h, which is not for programs. They stand for the result of
	// an interrupted call until the kernel has decided what to do (arch/x86/kernel/signal.c,
	// arch_do_signal_or_restart).
	ERESTARTSYS_KERNEL = 512,
	ERESTARTNOINTR_KERNEL = 513,
	ERESTARTNOHAND_KERNEL = 514,
	ERESTART_RESTARTBLOCK_KERNEL = 516,
};

static const uint8_t syscall_code[CODE_BYTES] = {0x0f, 0x05};
static const uint8_t interrupt_code[CODE_BYTES] = {0xcd, 0x80};

// mov $59, %eax; syscall; mov $126, %edi; mov $231, %eax; syscall; hlt
static const uint8_t execve_code[EXECVE_CODE_WORDS * sizeof(uint64_t)] = {
    0xb8, 0x3b, 0, 0, 0, 0x0f, 0x05, 0xbf, 0x7e, 0, 0, 0, 0xb8, 0xe7, 0, 0, 0, 0x0f, 0x05, 0xf4,
};

void thread_registers_read(const struct thread_registers *thread, struct registers *ret)
{
	const struct user_regs_struct *user = &thread->user;

	*ret = (struct registers){
	    .value =
	        {
	            [RAX] = user->rax,
	            [RDX] = user->rdx,
	            [RCX] = user->rcx,
	            [RBX] = user->rbx,
	            [RSI] = user->rsi,
	            [RDI] = user->rdi,
	            [RBP] = user->rbp,
	            [RSP] = user->rsp,
	            [R8] = user->r8,
	            [R9] = user->r9,
	            [R10] = user->r10,
	            [R11] = user->r11,
	            [R12] = user->r12,
	            [R13] = user->r13,
	            [R14] = user->r14,
	            [R15] = user->r15,
	            [RIP] = user->rip,
	        },
	    .known = (1u << (RIP + 1)) - 1,
	};
}

bool thread_registers_are_32_bit(const struct thread_registers *thread)
{
	return thread->user.cs == CODE_SEGMENT_OF_32_BITS;
}

uint64_t thread_registers_tls(const struct thread_registers *thread)
{
	return thread->user.fs_base;
}

int64_t syscall_number(const struct thread_registers *thread)
{
	return (int64_t)thread->user.orig_rax;
}

int64_t syscall_result(const struct thread_registers *thread)
{
	return (int64_t)thread->user.rax;
}

void syscall_set(struct thread_registers *thread, int64_t number, int64_t result)
{
	thread->user.orig_rax = (uint64_t)number;
	thread->user.rax = (uint64_t)result;
}

#define REGISTER(name) offsetof(struct user_regs_struct, name)

// As in the psABI, A.2.1.
static size_t argument_at(unsigned int number)
{
	static const size_t registers[SYSCALL_ARGUMENTS] = {
	    REGISTER(rdi), REGISTER(rsi), REGISTER(rdx), REGISTER(r10), REGISTER(r8), REGISTER(r9)};

	return registers[number - 1];
}

uint64_t syscall_argument(const struct thread_registers *thread, unsigned int number)
{
	uint64_t value;

	memcpy(&value, (const char *)&thread->user + argument_at(number), sizeof(value));
	return value;
}

void syscall_set_argument(struct thread_registers *thread, unsigned int number, uint64_t value)
{
	memcpy((char *)&thread->user + argument_at(number), &value, sizeof(value));
}

void syscall_begin_again(struct thread_registers *thread)
{
	thread->user.rax = -ERESTARTNOHAND_KERNEL;
}

bool syscall_was_interrupted(int64_t result)
{
	return result == -EINTR || result == -ERESTARTSYS_KERNEL ||
	       result == -ERESTARTNOINTR_KERNEL || result == -ERESTARTNOHAND_KERNEL ||
	       result == -ERESTART_RESTARTBLOCK_KERNEL;
}

bool syscall_needs_restart_syscall(const struct thread_registers *thread)
{
	return syscall_result(thread) == -ERESTART_RESTARTBLOCK_KERNEL;
}

void syscall_step_back(struct thread_registers *thread, int64_t number)
{
	thread->user.rax = (uint64_t)number;
	thread->user.orig_rax = -1; // in no call: nothing for the kernel to restart
	thread->user.rip -= CODE_BYTES;
}

void syscall_end(struct thread_registers *thread, int64_t result)
{
	thread->user.rax = (uint64_t)result;
	thread->user.orig_rax = -1;
}

bool syscall_is_inside(const struct thread_registers *thread,
                       const struct thread_registers *entered, bool *ret_has_begun)
{
	const struct user_regs_struct *now = &thread->user, *then = &entered->user;

	if (now->rdi != then->rdi || now->rsi != then->rsi || now->rdx != then->rdx ||
	    now->r10 != then->r10 || now->r8 != then->r8 || now->rsp != then->rsp ||
	    now->rbx != then->rbx || now->rbp != then->rbp)
		return false;
	*ret_has_begun = now->rip == then->rip + CODE_BYTES && now->orig_rax == then->rax;
	return *ret_has_begun || (now->rip == then->rip && now->rax == then->rax);
}

bool syscall_result_may_be_number(const struct thread_registers *thread)
{
	return thread->user.rax == thread->user.orig_rax;
}

size_t syscall_code_bytes(void)
{
	return CODE_BYTES;
}

uint64_t syscall_code_end(const struct thread_registers *thread)
{
	return thread->user.rip;
}

bool syscall_is_compat_code(const uint8_t *code)
{
	return memcmp(code, interrupt_code, CODE_BYTES) == 0;
}

bool syscall_is_code(const uint8_t *code)
{
	return memcmp(code, syscall_code, CODE_BYTES) == 0 || syscall_is_compat_code(code);
}

bool syscall_is_compat_arch(uint32_t audit_arch)
{
	return audit_arch == AUDIT_ARCH_I386;
}

uint64_t thread_registers_sp(const struct thread_registers *thread)
{
	return thread->user.rsp;
}

uint64_t thread_registers_pc(const struct thread_registers *thread)
{
	return thread->user.rip;
}

void thread_registers_execve(struct thread_registers *thread, uint64_t path, uint64_t argv,
                             uint64_t envp, uint64_t ret_code[EXECVE_CODE_WORDS])
{
	thread->user.rdi = path;
	thread->user.rsi = argv;
	thread->user.rdx = envp;
	memcpy(ret_code, execve_code, sizeof(execve_code));
}

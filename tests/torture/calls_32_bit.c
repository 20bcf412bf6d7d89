// SPDX-License-Identifier: MIT
// 32-bit code in a 64-bit program.
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "torture.h"

#ifdef __x86_64__

// enter_32(code, n, stack): 32-bit code with n in ecx and 0 in eax, which comes back to back_64.
__asm__(".text\n"
        ".type enter_32, @function\n"
        "enter_32:\n"
        "	push %rbp\n"
        "	push %rbx\n"
        "	push %r12\n"
        "	push %r13\n"
        "	push %r14\n"
        "	push %r15\n"
        "	mov %rsp, stack_64(%rip)\n"
        "	mov %rdx, %rsp\n"
        "	pushq $0x23\n" // __USER32_CS
        "	push %rdi\n"
        "	mov %esi, %ecx\n"
        "	xor %eax, %eax\n"
        "	lretq\n"
        "back_64:\n"
        "	mov stack_64(%rip), %rsp\n"
        "	pop %r15\n"
        "	pop %r14\n"
        "	pop %r13\n"
        "	pop %r12\n"
        "	pop %rbx\n"
        "	pop %rbp\n"
        "	ret\n"
        ".size enter_32, . - enter_32\n"
        ".local stack_64\n"
        ".comm stack_64, 8, 8\n");

long enter_32(void *code, uint32_t n, void *stack);
extern char back_64[];

#define CODE_BYTES 4096
#define SUMMED 1000000u

// 0: add %ecx, %eax; dec %ecx; jnz 0b; ljmp $__USER_CS, 1f;  1: jmp *0(%rip), back_64
static void write_code(unsigned char *code)
{
	static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};
	const uint32_t there = (uint32_t)(uintptr_t)(code + 16);
	const uint64_t back = (uint64_t)(uintptr_t)back_64;

	memcpy(code, "\x01\xc8\x49\x75\xfb\xea", 6);
	memcpy(code + 6, &there, sizeof(there));
	memcpy(code + 10, "\x33\0", 2);
	memcpy(code + 16, jump, sizeof(jump));
	memcpy(code + 16 + sizeof(jump), &back, sizeof(back));
}

// Its registers are those of 32-bit code only in the kernel's other form of them.
FRAME void run_32_bit_code(struct kind *kind)
{
	static unsigned char *code;

	if (!code) {
		code = mmap(NULL, 2 * CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		            MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
		if (code == MAP_FAILED)
			die("mmap");
		write_code(code);
	}
	const uint32_t sum = (uint32_t)enter_32(code, SUMMED, code + 2 * CODE_BYTES);
	if (sum != (uint32_t)((uint64_t)SUMMED * (SUMMED + 1) / 2))
		fault(kind, "sum", sum);
}

#endif

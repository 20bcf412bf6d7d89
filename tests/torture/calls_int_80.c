// SPDX-License-Identifier: MIT
// Calls by the numbers of i386: with lists of buffers and messages, whose structures are of 32-bit
// words; and from 32-bit code.
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "torture.h"

#ifdef __x86_64__

enum { WRITE = 4, WRITEV = 146, EPOLL_WAIT = 256, SENDMSG = 370, RECVMSG = 372 };

#define GIVEN 300000
#define TAKEN 800
#define CYCLE 251 // all bytes that are sent are 0..250, over and over

struct buffer {
	uint32_t address, size;
};

struct message {
	uint32_t name, name_size, buffers, n_buffers, control, control_size, flags;
};

// What the calls name, in memory that 32 bits reach.
struct low {
	struct message message;
	struct buffer buffers[3];
	unsigned char bytes[];
};

static uint32_t address_of(const void *of)
{
	return (uint32_t)(uintptr_t)of;
}

// One message of three buffers.
static struct low *make_low(uint32_t size)
{
	struct low *low = low_memory(sizeof(*low) + size);
	const uint32_t first = size / 3, second = size / 4;

	low->buffers[0] = (struct buffer){address_of(low->bytes), first};
	low->buffers[1] = (struct buffer){address_of(low->bytes + first), second};
	low->buffers[2] =
	    (struct buffer){address_of(low->bytes + first + second), size - first - second};
	low->message.buffers = address_of(low->buffers);
	low->message.n_buffers = 3;
	return low;
}

// Returns where the first byte is that does not go on after `at` others; -1: there is none.
static long find_other(const unsigned char *bytes, long n, unsigned int at)
{
	for (long i = 0; i < n; i++)
		if (bytes[i] != (at + (unsigned int)i) % CYCLE)
			return i;
	return -1;
}

// The other end of what is given.
struct taker {
	struct kind *kind;
	int fds[2];
	atomic_long n_taken;
	long n_given;
};

static void *take_slowly(void *argument)
{
	struct taker *taker = argument;
	unsigned char bytes[5000];

	for (long n; (n = read(taker->fds[0], bytes, sizeof(bytes))) > 0; usleep(30)) {
		const long at = atomic_fetch_add(&taker->n_taken, n);
		const long other = find_other(bytes, n, (unsigned int)(at % CYCLE));
		if (other >= 0)
			fault(taker->kind, "other byte, at", other);
	}
	return NULL;
}

static void begin_taking(struct taker *taker, struct kind *kind, int is_pipe)
{
	if (is_pipe ? pipe(taker->fds) : socketpair(AF_UNIX, SOCK_STREAM, 0, taker->fds))
		die("pipe");
	taker->kind = kind;
	help(take_slowly, taker);
}

static void make_next(const struct taker *taker, unsigned char *bytes, long n)
{
	for (long i = 0; i < n; i++)
		bytes[i] = (unsigned char)((taker->n_given + i) % CYCLE);
}

// Waits until all is taken.
static void note_given(struct taker *taker, long n, long wanted)
{
	if (n != wanted)
		fault(taker->kind, "given", n);
	taker->n_given += n > 0 ? n : 0;
	while (atomic_load(&taker->n_taken) < taker->n_given && !is_over())
		usleep(100);
}

FRAME void give_int_80(struct kind *kind)
{
	static struct taker taker;
	static struct low *low;
	long n;

	if (!low) {
		low = make_low(GIVEN);
		begin_taking(&taker, kind, 0);
	}
	make_next(&taker, low->bytes, GIVEN);
	if (kind->calls % 2)
		n = int_80(WRITEV, taker.fds[1], address_of(low->buffers), 3, 0);
	else
		n = int_80(SENDMSG, taker.fds[1], address_of(&low->message), 0, 0);
	note_given(&taker, n, GIVEN);
}

static void *give_slowly(void *argument)
{
	unsigned char bytes[20];

	for (unsigned int at = 0;; usleep(30)) {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (unsigned char)(at++ % CYCLE);
		if (send(*(int *)argument, bytes, sizeof(bytes), MSG_NOSIGNAL) < 0)
			return NULL;
	}
}

FRAME void take_int_80(struct kind *kind)
{
	static struct low *low;
	static int fds[2];
	static unsigned int at;

	if (!low) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
			die("socketpair");
		low = make_low(TAKEN);
		help(give_slowly, &fds[1]);
	}
	const long n = int_80(RECVMSG, fds[0], address_of(&low->message), MSG_WAITALL, 0);
	const long other = find_other(low->bytes, n, at);
	if (n != TAKEN)
		fault(kind, "taken", n);
	if (other >= 0)
		fault(kind, "other byte, at", other);
	at += n > 0 ? (unsigned int)n : 0;
}

// enter_32(code, arguments, stack): int $0x80 in 32-bit code, with eax, ebx, ecx, edx and esi; that
// code comes back to back_64.
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
        "	mov 0(%rsi), %eax\n"
        "	mov 4(%rsi), %ebx\n"
        "	mov 8(%rsi), %ecx\n"
        "	mov 12(%rsi), %edx\n"
        "	mov 16(%rsi), %esi\n"
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

long enter_32(void *code, const uint32_t arguments[5], void *stack);
extern char back_64[];

#define CODE_BYTES 4096

// int $0x80; ljmp $__USER_CS, 1f;  1: jmp *0(%rip), back_64
static void write_code(unsigned char *code)
{
	static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};
	const uint32_t there = address_of(code + 16);
	const uint64_t back = (uint64_t)(uintptr_t)back_64;

	if (mprotect(code, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC))
		die("mprotect");
	memcpy(code, "\xcd\x80\xea", 3);
	memcpy(code + 3, &there, sizeof(there));
	memcpy(code + 7, "\x33\0", 2);
	memcpy(code + 16, jump, sizeof(jump));
	memcpy(code + 16 + sizeof(jump), &back, sizeof(back));
}

FRAME void call_from_32(struct kind *kind)
{
	static struct taker taker;
	static unsigned char *code;
	static int epoll;

	if (!code) {
		code = low_memory(2 * CODE_BYTES + GIVEN);
		write_code(code);
		epoll = epoll_create1(0);
		begin_taking(&taker, kind, 1);
	}
	unsigned char *stack = code + 2 * CODE_BYTES, *bytes = stack;
	const uint32_t wait[] = {EPOLL_WAIT, (uint32_t)epoll, address_of(bytes), 1, 2};
	const int waited = (int)enter_32(code, wait, stack);
	if (waited != 0)
		fault(kind, "epoll_wait", waited);
	const uint32_t write[] = {WRITE, (uint32_t)taker.fds[1], address_of(bytes), GIVEN, 0};
	make_next(&taker, bytes, GIVEN);
	note_given(&taker, (int)enter_32(code, write, stack), GIVEN);
}

#endif

// SPDX-License-Identifier: MIT
// Calls with lists of buffers and messages, by the numbers of i386: their structures are of 32-bit
// words.
#include <stdint.h>
#include <sys/socket.h>

#include "torture.h"

#ifdef __x86_64__

enum { WRITEV = 146, SENDMSG = 370, RECVMSG = 372 };

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

static struct kind *giving;
static atomic_long n_taken;

static void *take_slowly(void *argument)
{
	static unsigned char bytes[5000];

	for (long n; (n = read(*(int *)argument, bytes, sizeof(bytes))) > 0; usleep(30)) {
		const long other =
		    find_other(bytes, n, (unsigned int)(atomic_load(&n_taken) % CYCLE));
		if (other >= 0)
			fault(giving, "other byte, at", other);
		atomic_fetch_add(&n_taken, n);
	}
	return NULL;
}

FRAME void give_int_80(struct kind *kind)
{
	static struct low *low;
	static int fds[2];
	static long n_given;
	long n;

	if (!low) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
			die("socketpair");
		low = make_low(GIVEN);
		giving = kind;
		help(take_slowly, &fds[0]);
	}
	for (long i = 0; i < GIVEN; i++)
		low->bytes[i] = (unsigned char)((n_given + i) % CYCLE);
	if (kind->calls % 2)
		n = int_80(WRITEV, fds[1], address_of(low->buffers), 3, 0);
	else
		n = int_80(SENDMSG, fds[1], address_of(&low->message), 0, 0);
	if (n != GIVEN)
		fault(kind, "given", n);
	n_given += n > 0 ? n : 0;
	while (atomic_load(&n_taken) < n_given && !is_over())
		usleep(100);
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

#endif

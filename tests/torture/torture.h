// SPDX-License-Identifier: MIT
// What the self-checking programs of the torture suite share: kinds of calls, each made all the
// time by threads of its own, and the counters that tell what went otherwise than it should.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../fixtures/fixture.h"

enum { MAX_LATE = 1 << 16 };

struct kind {
	const char *name;
	void (*run)(struct kind *kind); // one call, or one round of calls; counts faults itself
	int ends_early;                 // next to SIGCONT: it looks, or receives on a unix socket
	pthread_t thread;
	long calls, faults;
	char first_fault[96];
	float *late_ms; // of timed calls: by how much each lasted longer than it should
	int n_late;
};

// Has the program run for as long as it should?
int is_over(void);

// Does somebody send SIGCONT meanwhile?
int is_continued(void);

// One more call that ended otherwise than it should, with what it returned.
void fault(struct kind *kind, const char *what, long result);

// This machine does not have it, or does not permit it; the line of the kind says so.
void leave_out(struct kind *kind, const char *why);

// When a call begins, and for how long its thread has waited for a CPU until then.
struct beginning {
	double start_s, waited_s;
};

struct beginning begin_call(void);

// A call with a timeout is over: it may not be early (but for early_ms, where the kernel counts in
// jiffies), and its lateness is noted: without the time for which the thread was ready, and others
// had the CPUs.
void note_time(struct kind *kind, const struct beginning *begun, double wanted_ms, double early_ms);

// Begins a thread, to be joined.
static inline pthread_t begin(void *(*function)(void *), void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, function, argument))
		die("pthread_create");
	return thread;
}

// A thread that nobody waits for.
static inline void help(void *(*function)(void *), void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, function, argument))
		die("pthread_create");
	pthread_detach(thread);
}

static inline void pair_unix(int fds[2], int type)
{
	if (socketpair(AF_UNIX, type, 0, fds))
		die("socketpair");
}

static inline void pair_tcp(int fds[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	const int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	socklen_t size = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fds[1] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &size) ||
	    connect(fds[1], (struct sockaddr *)&address, size))
		die("tcp");
	fds[0] = accept(listener, NULL, NULL);
	setsockopt(fds[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	close(listener);
}

// A listening socket with a name that the kernel chooses, and that name.
static inline int listen_somewhere(int backlog, struct sockaddr_un *ret_name, socklen_t *ret_size)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	ret_name->sun_family = AF_UNIX;
	*ret_size = sizeof(*ret_name);
	if (bind(fd, (struct sockaddr *)ret_name, sizeof(sa_family_t)) || listen(fd, backlog) ||
	    getsockname(fd, (struct sockaddr *)ret_name, ret_size))
		die("listen");
	return fd;
}

// A small random number, below n. A thread that executes the program anew goes on with others.
static inline int random_below(int n)
{
	static _Thread_local unsigned int state;

	if (!state)
		state = (unsigned int)own_tid() ^ (unsigned int)(now_s() * 1e6);
	return rand_r(&state) % n;
}

#ifdef __x86_64__
// A call by i386's number.
static inline long int_80(long nr, long a, long b, long c, long d)
{
	long result;

	__asm__ volatile("int $0x80"
	                 : "=a"(result)
	                 : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d)
	                 : "memory", "r8", "r9", "r10", "r11");
	return (int)result;
}

// Of calls_32_bit.c.
void run_32_bit_code(struct kind *kind);
#endif

// Of calls_descriptors.c.
void own_descriptors(struct kind *kind);
void take_descriptor(struct kind *kind);
void end_at_descriptor(struct kind *kind);

// Of calls_waiting.c.
void wait_requeued(struct kind *kind);
void wait_semaphore(struct kind *kind);

// Of calls_served.c: getpriority(2) of the calling thread is for another one to answer. Returns the
// descriptor that the questions come from; negative: that is not possible here.
int ask_for_supervision(void);

// Of calls_kvm.c.
void cut_kvm_run(struct kind *kind);

// Terminated by a row without a name.
extern struct kind timed_kinds[], woken_kinds[], data_kinds[], cut_kinds[], socket_kinds[],
    interrupted_kinds[], spared_kinds[], served_kinds[];

// SPDX-License-Identifier: MIT
#include "lock_look.h"

#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "memory.h"
#include "resident.h"
#include "syscall_numbers.h"

enum {
	FDINFO_BYTES = 4096,
	MIN_ADDRESS = 0x1000,
	PAGE_BYTES = 4096,
	DESCRIPTOR_BYTES = 0x900, // struct pthread's, as of 2.36
};

static bool read_at(const struct lock_look *look, uint64_t address, void *bytes, size_t size)
{
	return address >= MIN_ADDRESS && address < ARCH_NATIVE->user_end &&
	       resident_read(NULL, look->tid, address, bytes, size);
}

// Reads the words one after the other: one may lie on a page that is not in memory.
static void read_words(struct lock_look *look)
{
	const uint64_t start = look->call.args[0] - LOCK_WORDS_BEFORE * sizeof(uint32_t);

	if (read_at(look, start, look->words, sizeof(look->words))) {
		look->has_words = (1u << LOCK_WORDS) - 1;
		return;
	}
	for (unsigned int i = 0; i < LOCK_WORDS; i++)
		if (read_at(look, start + i * sizeof(uint32_t), &look->words[i], sizeof(uint32_t)))
			look->has_words |= (uint16_t)(1u << i);
		else
			look->words[i] = 0;
}

uint32_t lock_look_word(const struct lock_look *look, int n)
{
	const int i = n + LOCK_WORDS_BEFORE;

	return i >= 0 && i < LOCK_WORDS && look->has_words & (1u << i) ? look->words[i] : 0;
}

// Reads the owner from _IO_lock_t: lock, count, owner (a pointer to the thread's descriptor).
static void read_owner(struct lock_look *look)
{
	const uint64_t pointer = lock_look_word(look, 2) | (uint64_t)lock_look_word(look, 3) << 32;

	if (pointer % sizeof(uint64_t) != 0 ||
	    !read_at(look, pointer + ARCH_NATIVE->pthread_self, &look->owner_self,
	             sizeof(look->owner_self)) ||
	    look->owner_self != pointer ||
	    !read_at(look, pointer + ARCH_NATIVE->pthread_tid, &look->owner_tid,
	             sizeof(look->owner_tid)))
		return;
	look->owner_pointer = pointer;
}

// Finds the thread's descriptor, which names itself (tcbhead_t, self), and begins before the
// futex's word. A join waits at different places in it: at the tid, or, as of 2.43, at a state of
// its own.
static uint64_t find_descriptor(const struct lock_look *look)
{
	const uint64_t futex = look->call.args[0], page = futex & ~(uint64_t)(PAGE_BYTES - 1);
	uint64_t words[DESCRIPTOR_BYTES / sizeof(uint64_t)];
	const size_t self = ARCH_NATIVE->pthread_self / sizeof(*words);
	uint64_t start = (futex & ~(uint64_t)7) - sizeof(words);
	size_t n = array_size(words);

	if (!read_at(look, start, words, sizeof(words))) {
		// The page before it may not be in memory.
		start = page > start ? page : start;
		n = ((futex & ~(uint64_t)7) - start) / sizeof(*words);
		if (n == 0 || !read_at(look, start, words, n * sizeof(*words)))
			return 0;
	}
	for (size_t i = n; i-- > self;)
		if (words[i] == start + (i - self) * sizeof(*words))
			return words[i];
	return 0;
}

// Reads whom pthread_join waits for: at a word that the kernel clears, with a wake-up as if
// processes shared it.
static void read_thread(struct lock_look *look)
{
	if (look->call.args[1] & FUTEX_PRIVATE_FLAG)
		return;
	const uint64_t pointer = find_descriptor(look);
	if (!pointer || !read_at(look, pointer + ARCH_NATIVE->pthread_tid, &look->thread_tid,
	                         sizeof(look->thread_tid)))
		look->thread_tid = 0;
}

// Returns the number after `key` in a line of /proc/PID/fdinfo/N; 0: there is none. Does not ask
// the file itself.
static long long descriptor_number(const struct lock_look *look, int descriptor, const char *key)
{
	char name[64], text[FDINFO_BYTES];
	char *end;

	snprintf(name, sizeof(name), "fdinfo/%d", descriptor);
	_cleanup_close_ int fd = proc_open(look->pid, look->tid, name);
	const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	const char *line = strstr(text, key);
	if (!line)
		return 0;
	const long long number = strtoll(line + strlen(key), &end, 10);
	return end != line + strlen(key) ? number : 0;
}

// Needs "ino:", which is there since Linux 5.14.
static uint64_t inode_of(const struct lock_look *look)
{
	return (uint64_t)descriptor_number(look, (int)look->call.args[0], "\nino:");
}

// Returns the process of a pidfd (pidfd_open(2)); 0: it is not a pidfd, or its process has ended.
static int process_of(const struct lock_look *look, int descriptor)
{
	const long long pid = descriptor_number(look, descriptor, "\nPid:");

	return pid > 0 && pid <= INT_MAX ? (int)pid : 0;
}

// Returns the process whose end the thread waits for: with waitid(2) or, for nothing else, with
// poll(2).
static int awaited_pid(const struct lock_look *look)
{
	const struct proc_syscall *call = &look->call;
	struct pollfd wait;

	if (call->nr == SYS_waitid && call->args[0] == P_PIDFD)
		return process_of(look, (int)call->args[1]);
	if ((call->nr != SYS_poll && call->nr != SYS_ppoll) || call->args[1] != 1 ||
	    !read_at(look, call->args[0], &wait, sizeof(wait)) || !(wait.events & POLLIN))
		return 0;
	return process_of(look, wait.fd);
}

void lock_look_read_words(struct lock_look *look)
{
	read_words(look);
	read_owner(look);
	read_thread(look);
}

bool lock_look_take(int pid, int tid, struct lock_look *ret)
{
	struct lock_look look = {.pid = pid, .tid = tid};
	struct proc_schedstat stat;

	if (!proc_read_schedstat(-1, pid, tid, &stat) ||
	    !proc_read_syscall(-1, pid, tid, &look.call) || look.call.running)
		return false;
	look.runs = stat.runs;
	// After a stop, a call with a time may begin again, with the same arguments.
	if (look.call.nr == SYS_futex || look.call.nr == SYS_restart_syscall) {
		lock_look_read_words(&look);
	} else if (look.call.nr == SYS_flock || look.call.nr == SYS_fcntl) {
		look.inode = inode_of(&look);
	} else {
		look.awaited_pid = awaited_pid(&look);
	}
	*ret = look;
	return true;
}

bool lock_look_is_same(const struct lock_look *a, const struct lock_look *b)
{
	return a->pid == b->pid && a->tid == b->tid && a->runs == b->runs &&
	       a->call.nr == b->call.nr && a->call.sp == b->call.sp &&
	       memcmp(a->call.args, b->call.args, sizeof(a->call.args)) == 0 &&
	       a->has_words == b->has_words && memcmp(a->words, b->words, sizeof(a->words)) == 0 &&
	       a->owner_tid == b->owner_tid && a->thread_tid == b->thread_tid &&
	       a->inode == b->inode && a->awaited_pid == b->awaited_pid;
}

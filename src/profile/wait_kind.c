// SPDX-License-Identifier: MIT
#include "wait_kind.h"

#include <stdlib.h>
#include <string.h>

#include "language_text.h"
#include "memory.h"
#include "syscall_name.h"
#include "syscall_numbers.h"
#include "text.h"

const char *wait_kind_name(enum wait_kind kind)
{
	static const char *const names[N_WAIT_KINDS] = {
	    [WAIT_KIND_RUNNING] = "running", [WAIT_KIND_RUNNABLE] = "runnable",
	    [WAIT_KIND_LOCK] = "lock",       [WAIT_KIND_CONDITION] = "condition",
	    [WAIT_KIND_FILE] = "file",       [WAIT_KIND_SOCKET] = "socket",
	    [WAIT_KIND_EVENT] = "event",     [WAIT_KIND_TIMER] = "timer",
	    [WAIT_KIND_PIPE] = "pipe",       [WAIT_KIND_STOPPED] = "stopped",
	};

	return names[kind];
}

const char *wait_kind_words(enum wait_kind kind)
{
	return kind == WAIT_KIND_RUNNABLE ? "waiting for a CPU" : wait_kind_name(kind);
}

bool wait_kind_is_blocked(enum wait_kind kind)
{
	return kind != WAIT_KIND_RUNNING && kind != WAIT_KIND_RUNNABLE;
}

// Returns the port at the end of an address such as "10.0.0.1:80" or "[::1]:80"; -1: there is none.
static long port_of(const char *address, size_t length)
{
	const char *colon = memrchr(address, ':', length);

	return colon ? strtol(colon + 1, NULL, 10) : -1;
}

// True if the other end has begun the connection: its port is one that the kernel chooses, and
// ours is none (sockets.c).
static bool is_accepted(const char *text, const char *arrow)
{
	enum { FIRST_CHOSEN = 32768 }; // net.ipv4.ip_local_port_range

	return port_of(text, arrow - text) < FIRST_CHOSEN &&
	       port_of(arrow, strlen(arrow)) >= FIRST_CHOSEN;
}

// True if the thread waits for a client: to connect, or to ask. Tasks wait for all sockets
// alike, and most of them for a client.
static bool waits_for_client(const struct wait *wait)
{
	const char *text = !wait ? "" : wait->meaning ? wait->meaning : wait->descriptor;
	const char *arrow = strstr(text, " -> ");

	if (arrow)
		return is_accepted(text, arrow);
	// Only the end that has listened has a path.
	return strncmp(text, "tcp ", 4) == 0 || strncmp(text, "udp ", 4) == 0 ||
	       strncmp(text, "unix ", 5) == 0 ||
	       (wait && (wait->syscall == SYS_accept || wait->syscall == SYS_accept4 ||
	                 (wait->reason[0] && !text[0])));
}

bool wait_kind_has_no_work(enum wait_kind kind, const struct wait *wait)
{
	return kind == WAIT_KIND_CONDITION || kind == WAIT_KIND_EVENT || kind == WAIT_KIND_TIMER ||
	       (kind == WAIT_KIND_SOCKET && waits_for_client(wait));
}

// For languages with packages and templates it is enough that a name contains one of these.
static const struct wait_rule part_rules[] = {
    {"lock_contended", WAIT_NAME_RUNTIME_LOCK}, // Rust's std
    {"lock_slow", WAIT_NAME_RUNTIME_LOCK},      // parking_lot
    {"lock_shared_slow", WAIT_NAME_RUNTIME_LOCK},
    {"lock_exclusive_slow", WAIT_NAME_RUNTIME_LOCK},
    {"read_contended", WAIT_NAME_RUNTIME_LOCK},
    {"write_contended", WAIT_NAME_RUNTIME_LOCK},
    {"LockSlow", WAIT_NAME_RUNTIME_LOCK}, // absl::Mutex
    {"atomic_wait", WAIT_NAME_CONDITION}, // std::atomic<T>::wait
    {0},
};

static const struct wait_rule rules[] = {
    {"lll_lock_wait*", WAIT_NAME_LOCK},
    {"pthread_mutex_lock*", WAIT_NAME_LOCK},
    {"pthread_mutex_timedlock*", WAIT_NAME_LOCK},
    {"pthread_mutex_clocklock*", WAIT_NAME_LOCK},
    {"pthread_mutex_cond_lock*", WAIT_NAME_LOCK},
    {"pthread_rwlock_*", WAIT_NAME_LOCK},
    {"pthread_spin_lock", WAIT_NAME_LOCK},
    {"mtx_lock", WAIT_NAME_LOCK},
    {"mtx_timedlock", WAIT_NAME_LOCK},
    {"flockfile", WAIT_NAME_LOCK},
    {"cxa_guard_acquire", WAIT_NAME_LOCK},
    {"ProcSleep", WAIT_NAME_RUNTIME_LOCK}, // PostgreSQL: of a row, on epoll
    {"LWLockAcquire*", WAIT_NAME_RUNTIME_LOCK},
    {"sqlite3InvokeBusyHandler", WAIT_NAME_RUNTIME_LOCK}, // it sleeps, and tries again
    {"pthread_cond_*", WAIT_NAME_CONDITION},
    {"cnd_wait", WAIT_NAME_CONDITION},
    {"cnd_timedwait", WAIT_NAME_CONDITION},
    {"sem_wait*", WAIT_NAME_CONDITION},
    {"sem_timedwait*", WAIT_NAME_CONDITION},
    {"sem_clockwait*", WAIT_NAME_CONDITION},
    {"new_sem_wait*", WAIT_NAME_CONDITION},
    {"pthread_join*", WAIT_NAME_CONDITION},
    {"pthread_clockjoin*", WAIT_NAME_CONDITION},
    {"pthread_timedjoin*", WAIT_NAME_CONDITION},
    {"pthread_barrier_wait", WAIT_NAME_CONDITION},
    {0},
};

static bool fits(const char *name, const char *file, const char *pattern)
{
	const char *at = strchr(pattern, '@');
	const size_t length = at ? (size_t)(at - pattern) : strlen(pattern);

	if (at && !text_ends_with(file, at + 1))
		return false;
	if (pattern[length - 1] == '*')
		return strncmp(name, pattern, length - 1) == 0;
	return strlen(name) == length && strncmp(name, pattern, length) == 0;
}

// Returns the name without what glibc puts in front of its inner names.
static const char *bare(const char *name)
{
	static const char *const prefixes[] = {"GI_", "libc_"};

	name += strspn(name, "_");
	for (size_t i = 0; i < array_size(prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
			name += strlen(prefixes[i]);
			name += strspn(name, "_");
		}
	return name;
}

static enum wait_name find_whole(const char *name, const char *file, const struct wait_rule *list)
{
	for (; list && list->name; list++)
		if (fits(name, file, list->name))
			return list->class;
	return WAIT_NAME_NOTHING;
}

static enum wait_name find_part(const char *name, const struct wait_rule *list)
{
	for (; list && list->name; list++)
		if (strstr(name, list->name))
			return list->class;
	return WAIT_NAME_NOTHING;
}

enum wait_name wait_name_of(const char *function, const char *file)
{
	const char *name = bare(function);
	enum wait_name found = find_whole(name, file, rules);

	for (size_t i = 0; language_texts[i] && !found; i++)
		found = find_whole(name, file, language_texts[i]->waits);
	if (!found)
		found = find_part(name, part_rules);
	for (size_t i = 0; language_texts[i] && !found; i++)
		found = find_part(name, language_texts[i]->wait_parts);
	return found;
}

bool wait_kind_is_client_call(const char *leaf)
{
	static const char *const calls[] = {"accept",      "accept4",      "epoll_wait",
	                                    "epoll_pwait", "epoll_pwait2", NULL};

	for (size_t i = 0; calls[i]; i++)
		if (strcmp(bare(leaf), calls[i]) == 0)
			return true;
	return false;
}

// True if one of the functions is of that class.
static bool has_class(const enum wait_name *classes, size_t n, enum wait_name class)
{
	for (size_t i = 0; i < n; i++)
		if (classes[i] == class)
			return true;
	return false;
}

// True if a worker waits for work: nothing with a name is between it and the lock.
static bool is_of_worker(const enum wait_name *classes, size_t n)
{
	size_t i = 0;

	while (i < n && (classes[i] == WAIT_NAME_BASE_LOCK || classes[i] == WAIT_NAME_UNKNOWN))
		i++;
	return i < n && classes[i] == WAIT_NAME_WORKER;
}

// Returns what a runtime's lock is waited for in: a condition, if its function is further out.
static enum wait_name of_base_lock(const enum wait_name *classes, size_t n)
{
	if (is_of_worker(classes, n))
		return WAIT_NAME_RUNTIME_CONDITION;
	return has_class(classes, n, WAIT_NAME_RUNTIME_CONDITION) ? WAIT_NAME_RUNTIME_CONDITION
	                                                          : WAIT_NAME_RUNTIME_LOCK;
}

// Returns what a thread is parked for: a lock, if its function is further out.
static enum wait_name of_park(const enum wait_name *classes, size_t n)
{
	return has_class(classes, n, WAIT_NAME_RUNTIME_LOCK) ? WAIT_NAME_RUNTIME_LOCK
	                                                     : WAIT_NAME_RUNTIME_CONDITION;
}

// Returns the innermost class; but a lock that is built on a condition is further out than that.
static enum wait_name innermost(const enum wait_name *classes, size_t n)
{
	enum wait_name found = WAIT_NAME_NOTHING;

	n = n < WAIT_KIND_MAX_NAMES ? n : WAIT_KIND_MAX_NAMES;
	for (size_t i = 0; i < n; i++) {
		if (classes[i] == WAIT_NAME_NOTHING || classes[i] == WAIT_NAME_UNKNOWN ||
		    classes[i] == WAIT_NAME_WORKER)
			continue;
		if (classes[i] == WAIT_NAME_BASE_LOCK)
			return of_base_lock(classes + i, n - i);
		if (classes[i] == WAIT_NAME_PARK)
			return of_park(classes + i, n - i);
		if (classes[i] != WAIT_NAME_CONDITION)
			return found && classes[i] == WAIT_NAME_LOCK ? found : classes[i];
		found = WAIT_NAME_CONDITION;
	}
	return found;
}

// Classes of calls that wait for one sort of thing, or for what their descriptor is.
enum call_class {
	CALL_UNKNOWN,
	CALL_DESCRIPTOR,
	CALL_FUTEX,
	CALL_RESTARTED,
	CALL_LOCK,
	CALL_FILE,
	CALL_SOCKET,
	CALL_EVENT,
	CALL_TIMER,
	CALL_PIPE,
};

static const uint8_t call_classes[SYSCALL_MAX_NUMBER + 1] = {
    [SYS_futex] = CALL_FUTEX,
    [SYS_restart_syscall] = CALL_RESTARTED,
    [SYS_flock] = CALL_LOCK,
    [SYS_fcntl] = CALL_LOCK, // F_SETLKW: no other one waits
    [SYS_read] = CALL_DESCRIPTOR,
    [SYS_readv] = CALL_DESCRIPTOR,
    [SYS_write] = CALL_DESCRIPTOR,
    [SYS_writev] = CALL_DESCRIPTOR,
    [SYS_splice] = CALL_DESCRIPTOR,
    [SYS_tee] = CALL_DESCRIPTOR,
    [SYS_vmsplice] = CALL_DESCRIPTOR,
    [SYS_sendfile] = CALL_DESCRIPTOR,
    [SYS_ioctl] = CALL_DESCRIPTOR,
    [SYS_close] = CALL_DESCRIPTOR,
    [SYS_pread64] = CALL_FILE,
    [SYS_preadv] = CALL_FILE,
    [SYS_preadv2] = CALL_DESCRIPTOR,
    [SYS_pwrite64] = CALL_FILE,
    [SYS_pwritev] = CALL_FILE,
    [SYS_pwritev2] = CALL_DESCRIPTOR,
    [SYS_open] = CALL_FILE,
    [SYS_openat] = CALL_FILE,
    [SYS_creat] = CALL_FILE,
    [SYS_stat] = CALL_FILE,
    [SYS_lstat] = CALL_FILE,
    [SYS_fstat] = CALL_FILE,
    [SYS_newfstatat] = CALL_FILE,
    [SYS_statx] = CALL_FILE,
    [SYS_access] = CALL_FILE,
    [SYS_getdents64] = CALL_FILE,
    [SYS_fsync] = CALL_FILE,
    [SYS_fdatasync] = CALL_FILE,
    [SYS_msync] = CALL_FILE,
    [SYS_sync] = CALL_FILE,
    [SYS_syncfs] = CALL_FILE,
    [SYS_sync_file_range] = CALL_FILE,
    [SYS_ftruncate] = CALL_FILE,
    [SYS_truncate] = CALL_FILE,
    [SYS_fallocate] = CALL_FILE,
    [SYS_copy_file_range] = CALL_FILE,
    [SYS_rename] = CALL_FILE,
    [SYS_renameat] = CALL_FILE,
    [SYS_renameat2] = CALL_FILE,
    [SYS_unlink] = CALL_FILE,
    [SYS_unlinkat] = CALL_FILE,
    [SYS_mkdir] = CALL_FILE,
    [SYS_mkdirat] = CALL_FILE,
    [SYS_accept] = CALL_SOCKET,
    [SYS_accept4] = CALL_SOCKET,
    [SYS_connect] = CALL_SOCKET,
    [SYS_recvfrom] = CALL_SOCKET,
    [SYS_recvmsg] = CALL_SOCKET,
    [SYS_recvmmsg] = CALL_SOCKET,
    [SYS_sendto] = CALL_SOCKET,
    [SYS_sendmsg] = CALL_SOCKET,
    [SYS_sendmmsg] = CALL_SOCKET,
    [SYS_epoll_wait] = CALL_EVENT,
    [SYS_epoll_pwait] = CALL_EVENT,
    [SYS_epoll_pwait2] = CALL_EVENT,
    [SYS_poll] = CALL_EVENT,
    [SYS_ppoll] = CALL_EVENT,
    [SYS_select] = CALL_EVENT,
    [SYS_pselect6] = CALL_EVENT,
    [SYS_io_uring_enter] = CALL_EVENT,
    [SYS_io_getevents] = CALL_EVENT,
    [SYS_io_pgetevents] = CALL_EVENT,
    [SYS_rt_sigtimedwait] = CALL_EVENT,
    [SYS_nanosleep] = CALL_TIMER,
    [SYS_clock_nanosleep] = CALL_TIMER,
    [SYS_pause] = CALL_TIMER,
    [SYS_rt_sigsuspend] = CALL_TIMER,
    [SYS_wait4] = CALL_PIPE,
    [SYS_waitid] = CALL_PIPE,
    [SYS_vfork] = CALL_PIPE,
    [SYS_clone] = CALL_PIPE, // CLONE_VFORK
    [SYS_clone3] = CALL_PIPE,
    [SYS_msgrcv] = CALL_PIPE,
    [SYS_msgsnd] = CALL_PIPE,
    [SYS_mq_timedreceive] = CALL_PIPE,
    [SYS_mq_timedsend] = CALL_PIPE,
    [SYS_semop] = CALL_PIPE,
    [SYS_semtimedop] = CALL_PIPE,
};

// The calls that change the process's memory, and wait uninterruptibly for the kernel's lock of it,
// which another thread holds that does the same, or forks.
static bool changes_memory(int number)
{
	switch (number) {
	case SYS_mmap:
	case SYS_munmap:
	case SYS_mremap:
	case SYS_mprotect:
	case SYS_pkey_mprotect:
	case SYS_madvise:
	case SYS_brk:
		return true;
	default:
		return false;
	}
}

static enum call_class class_of_call(int number)
{
	return number >= 0 && number <= SYSCALL_MAX_NUMBER ? call_classes[number] : CALL_UNKNOWN;
}

// Returns the class of the call that a wrapper of the C library is named after.
static enum call_class class_of_wrapper(const char *function)
{
	const char *name = bare(function);

	for (int number = 0; number <= SYSCALL_MAX_NUMBER; number++) {
		if (call_classes[number] == CALL_UNKNOWN)
			continue;
		_cleanup_free_ char *call = syscall_name(number);
		if (strcmp(call, name) == 0)
			return call_classes[number];
	}
	return strcmp(name, "sigwaitinfo") == 0 || strcmp(name, "sigwait") == 0 ? CALL_EVENT
	                                                                        : CALL_UNKNOWN;
}

static enum wait_kind kind_of_descriptor(const struct wait *wait)
{
	static const struct {
		const char *begin;
		enum wait_kind kind;
	} descriptors[] = {
	    {"tcp ", WAIT_KIND_SOCKET},       {"udp ", WAIT_KIND_SOCKET},
	    {"unix", WAIT_KIND_SOCKET},       {"socket:", WAIT_KIND_SOCKET},
	    {"timerfd", WAIT_KIND_TIMER},     {"signalfd", WAIT_KIND_EVENT},
	    {"inotify", WAIT_KIND_EVENT},     {"fanotify", WAIT_KIND_EVENT},
	    {"epoll", WAIT_KIND_EVENT},       {"io_uring", WAIT_KIND_EVENT},
	    {"userfaultfd", WAIT_KIND_EVENT}, {"/dev/pts/", WAIT_KIND_PIPE},
	    {"/dev/tty", WAIT_KIND_PIPE},     {"/dev/ptmx", WAIT_KIND_PIPE},
	    {"/dev/console", WAIT_KIND_PIPE}, {"/", WAIT_KIND_FILE},
	};

	const char *text = !wait ? "" : wait->meaning ? wait->meaning : wait->descriptor;

	for (size_t i = 0; i < array_size(descriptors); i++)
		if (strncmp(text, descriptors[i].begin, strlen(descriptors[i].begin)) == 0)
			return descriptors[i].kind;
	return WAIT_KIND_PIPE; // pipe:[], "fifo /run/x", eventfd, or one that is not known
}

// True if a lock is known by its address (wait_reasons.h): a runtime's own, or one of the C
// library's.
static bool is_known_lock(const struct wait *wait)
{
	static const char *const locks[] = {"mutex ", "rwlock ", NULL};

	if (!wait || text_begins_with_any(wait->descriptor, locks))
		return wait != NULL;
	for (size_t i = 0; language_texts[i]; i++)
		if (language_texts[i]->locks &&
		    text_begins_with_any(wait->descriptor, language_texts[i]->locks))
			return true;
	return false;
}

static enum wait_kind kind_of_futex(enum wait_name name)
{
	if (name == WAIT_NAME_TIMER)
		return WAIT_KIND_TIMER;
	return name == WAIT_NAME_LOCK || name == WAIT_NAME_RUNTIME_LOCK ? WAIT_KIND_LOCK
	                                                                : WAIT_KIND_CONDITION;
}

static enum wait_kind kind_of_call(enum call_class class, const struct wait *wait)
{
	switch (class) {
	case CALL_DESCRIPTOR:
		return kind_of_descriptor(wait);
	case CALL_LOCK:
		return WAIT_KIND_LOCK;
	case CALL_FILE:
		return WAIT_KIND_FILE;
	case CALL_SOCKET:
		return WAIT_KIND_SOCKET;
	case CALL_TIMER:
		return WAIT_KIND_TIMER;
	case CALL_PIPE:
		return WAIT_KIND_PIPE;
	case CALL_EVENT:
		return wait && strcmp(wait->descriptor, WAIT_NO_DESCRIPTOR) == 0 ? WAIT_KIND_TIMER
		                                                                 : WAIT_KIND_EVENT;
	default:
		return WAIT_KIND_EVENT;
	}
}

// Returns the kind of a task's wait, from its runtime's words. One for a socket may be for another
// descriptor.
static enum wait_kind kind_of_reason(const struct wait *wait)
{
	for (size_t i = 0; language_texts[i]; i++) {
		const struct reason_rule *rule = language_texts[i]->reasons;
		for (; rule && rule->begin; rule++) {
			if (strncmp(wait->reason, rule->begin, strlen(rule->begin)) != 0)
				continue;
			return rule->kind == WAIT_KIND_SOCKET && wait->descriptor[0]
			           ? kind_of_descriptor(wait)
			           : rule->kind;
		}
	}
	return WAIT_KIND_EVENT; // of the runtime itself
}

enum wait_kind wait_kind_of(enum thread_state state, const struct wait *wait, const char *leaf,
                            const enum wait_name *classes, size_t n)
{
	enum call_class class = class_of_call(wait ? wait->syscall : NO_SYSCALL);

	if (state == THREAD_RUNNING)
		return WAIT_KIND_RUNNING;
	if (state == THREAD_STOPPED)
		return WAIT_KIND_STOPPED;
	if (state == THREAD_RUNNABLE)
		return WAIT_KIND_RUNNABLE;
	if (wait && wait->reason[0])
		return kind_of_reason(wait);
	if (state == THREAD_DISK && wait && changes_memory(wait->syscall))
		return WAIT_KIND_LOCK;
	// In disk sleep: a child that has not executed its program yet (vfork), or a file.
	if (state == THREAD_DISK)
		return class == CALL_PIPE ? WAIT_KIND_PIPE : WAIT_KIND_FILE;
	const enum wait_name name = innermost(classes, n);
	// A debugger's stop makes the kernel begin a call with a time again (restart_syscall(2)).
	if (class == CALL_UNKNOWN || class == CALL_RESTARTED) {
		const enum call_class wrapper = leaf ? class_of_wrapper(leaf) : CALL_UNKNOWN;
		if (wrapper != CALL_UNKNOWN)
			return kind_of_call(wrapper, wait);
	}
	if (class == CALL_FUTEX && is_known_lock(wait))
		return WAIT_KIND_LOCK;
	if (class == CALL_FUTEX ||
	    (name != WAIT_NAME_NOTHING && (class == CALL_UNKNOWN || class == CALL_RESTARTED)))
		return kind_of_futex(name);
	if ((class == CALL_EVENT || class == CALL_TIMER) && name == WAIT_NAME_RUNTIME_LOCK)
		return WAIT_KIND_LOCK;
	return kind_of_call(class, wait);
}

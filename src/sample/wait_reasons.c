// SPDX-License-Identifier: MIT
#include "wait_reasons.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "descriptor.h"
#include "file_locks.h"
#include "lock_claim.h"
#include "lock_look.h"
#include "memory.h"
#include "proc.h"
#include "process_list.h"
#include "profile.h"
#include "resident.h"
#include "run_stats.h"
#include "runtimes.h"
#include "sockets.h"
#include "syscall_name.h"
#include "syscall_numbers.h"
#include "target.h"
#include "text.h"

enum {
	COST_FACTOR = 1000,    // after reading the sockets, wait this many times as long as it took
	MAX_UNNAMED = 1 << 16, // sockets that have no meaning yet...
	MAX_NAMED = 1024,      // ...and how many are looked up at once
	MAX_POLLED = 256,      // descriptors of a poll that are looked at
	STACK_SIZE =
	    8 << 10, // of /proc/TID/stack: 64 functions (the kernel's MAX_STACK_TRACE_DEPTH)
	NO_DESCRIPTOR = -1,
	SLEEPS = -2, // instead of a descriptor: it is known that there is none
};

void wait_reasons_init(struct wait_reasons *waits, struct profile *profile, struct run_stats *stats,
                       bool kernel, bool locks)
{
	*waits = (struct wait_reasons){
	    .profile = profile, .stats = stats, .kernel = kernel, .locks = locks, .fds_fd = -1};
}

void wait_reasons_deinit(struct wait_reasons *waits)
{
	if (waits->fds_fd >= 0)
		close(waits->fds_fd);
	free(waits->unnamed);
	wait_peers_deinit(&waits->peers);
	free(waits->noted);
	*waits = (struct wait_reasons){.fds_fd = -1};
}

uint32_t wait_reasons_of_call(struct wait_reasons *waits, int64_t number)
{
	if (number < 0 || number > SYSCALL_MAX_NUMBER)
		return WAIT_NONE;
	return profile_intern_wait(waits->profile, (int)number, "", "");
}

// Returns the first descriptor that a poll waits for, SLEEPS if it has none, NO_DESCRIPTOR if they
// cannot be read; sets *ret_more to how many others there are.
static int polled(const struct target_thread *thread, size_t *ret_more)
{
	const struct proc_syscall *call = &thread->call;
	struct pollfd items[MAX_POLLED];
	const size_t n = call->args[1];
	int first = SLEEPS;

	if (n == 0)
		return SLEEPS;
	if (n > MAX_POLLED || !resident_read(thread->hint.resident, thread->tid, call->args[0],
	                                     items, n * sizeof(*items)))
		return NO_DESCRIPTOR;
	for (size_t i = 0; i < n; i++) {
		if (items[i].fd < 0)
			continue;
		*ret_more += first != SLEEPS;
		first = first == SLEEPS ? items[i].fd : first;
	}
	return first;
}

// Does the same for select: returns the lowest descriptor of its three sets.
static int selected(const struct target_thread *thread, size_t *ret_more)
{
	const struct proc_syscall *call = &thread->call;
	const size_t n = call->args[0] < FD_SETSIZE ? call->args[0] : FD_SETSIZE;
	const size_t bytes = (n + 63) / 64 * 8;
	const int none = call->args[0] == n ? SLEEPS : NO_DESCRIPTOR;
	int first = NO_DESCRIPTOR;
	bool all_read = true;
	fd_set all;

	FD_ZERO(&all);
	for (int i = 1; i <= 3 && n > 0; i++) {
		fd_set set;
		FD_ZERO(&set);
		if (!call->args[i])
			continue;
		if (!resident_read(thread->hint.resident, thread->tid, call->args[i], &set, bytes))
			all_read = false;
		for (size_t j = 0; j < array_size(all.fds_bits); j++)
			all.fds_bits[j] |= set.fds_bits[j];
	}
	for (size_t fd = 0; fd < n; fd++) {
		if (!FD_ISSET(fd, &all))
			continue;
		*ret_more += first != NO_DESCRIPTOR;
		first = first == NO_DESCRIPTOR ? (int)fd : first;
	}
	return first == NO_DESCRIPTOR && all_read ? none : first;
}

// The calls that wait for the descriptor that is their first argument. Sendfile has two (out, in):
// the receiver makes it wait.
static const bool waits_for_first[SYSCALL_MAX_NUMBER + 1] = {
    [SYS_sendfile] = true,
    [SYS_splice] = true,
    [SYS_tee] = true,
    [SYS_vmsplice] = true,
    [SYS_read] = true,
    [SYS_pread64] = true,
    [SYS_readv] = true,
    [SYS_preadv] = true,
    [SYS_preadv2] = true,
    [SYS_write] = true,
    [SYS_pwrite64] = true,
    [SYS_writev] = true,
    [SYS_pwritev] = true,
    [SYS_pwritev2] = true,
    [SYS_recvfrom] = true,
    [SYS_recvmsg] = true,
    [SYS_recvmmsg] = true,
    [SYS_sendto] = true,
    [SYS_sendmsg] = true,
    [SYS_sendmmsg] = true,
    [SYS_accept] = true,
    [SYS_accept4] = true,
    [SYS_connect] = true,
    [SYS_shutdown] = true,
    [SYS_close] = true,
    [SYS_fsync] = true,
    [SYS_fdatasync] = true,
    [SYS_sync_file_range] = true,
    [SYS_syncfs] = true,
    [SYS_ftruncate] = true,
    [SYS_fallocate] = true,
    [SYS_copy_file_range] = true,
    [SYS_flock] = true,
    [SYS_fcntl] = true,
    [SYS_ioctl] = true,
    [SYS_getdents64] = true,
    [SYS_fstat] = true,
    [SYS_lseek] = true,
    [SYS_epoll_wait] = true,
    [SYS_epoll_pwait] = true,
    [SYS_epoll_pwait2] = true,
    [SYS_io_uring_enter] = true,
    [SYS_mq_timedreceive] = true,
    [SYS_mq_timedsend] = true,
};

// Returns the descriptor that the call waits for; NO_DESCRIPTOR: none is known; or SLEEPS.
static int descriptor_of(const struct target_thread *thread, size_t *ret_more)
{
	const struct proc_syscall *call = &thread->call;

	switch (call->nr) {
	case SYS_poll:
	case SYS_ppoll:
		return polled(thread, ret_more);
	case SYS_select:
	case SYS_pselect6:
		return selected(thread, ret_more);
	default:
		break;
	}
	if (call->nr < 0 || call->nr > SYSCALL_MAX_NUMBER || !waits_for_first[call->nr] ||
	    call->args[0] > INT_MAX)
		return NO_DESCRIPTOR;
	return (int)call->args[0];
}

// Makes "epoll" of "anon_inode:[eventpoll]"; a new string.
static char *shorten(const char *link)
{
	static const char prefix[] = "anon_inode:";

	if (!text_begins_with(link, prefix))
		return memory_strdup(link);
	link += sizeof(prefix) - 1;
	link += *link == '[';
	const size_t length = strcspn(link, "]");
	if (length == strlen("eventpoll") && strncmp(link, "eventpoll", length) == 0)
		return memory_strdup("epoll");
	return memory_strndup(link, length);
}

// Names the lock that a sleeping thread waits for in futex(2), and who holds it.
//
// It goes by the words of the lock alone, which are read without a stop: the names of functions are
// not known while sampling goes on. So a lock has no name unless it looks like one of the C
// library's in all its parts (lock_claim.h).

// The value of a lock's word while somebody waits for it, in the C library and in many other locks.
enum { CONTENDED = 2 };

static const struct target_thread *find_thread(const struct target *target, int tid)
{
	for (size_t i = 0; i < target->n_threads; i++)
		if (target->threads[i]->tid == tid && !target->threads[i]->gone)
			return target->threads[i];
	return NULL;
}

static bool is_target_thread(void *context, int tid, bool is_shared)
{
	(void)is_shared; // a thread of another process is not looked for
	return find_thread(context, tid) != NULL;
}

static bool is_contended(const struct lock_look *look)
{
	return (look->call.args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT &&
	       (uint32_t)look->call.args[2] == CONTENDED;
}

// Returns a new string, owned by the caller: "mutex 0x7f0012345678, held by "worker-2" 4711", as it
// was when it was read; "the end of "worker-2" 4711" (pthread_join); or only the address of a lock
// whose holder is not known. NULL: it may not be a lock.
static char *lock_name_futex(const struct target *target, const struct target_thread *thread,
                             struct holder_names *names)
{
	struct lock_look look = {.pid = target->pid, .tid = thread->tid, .call = thread->call};
	char name[PROC_NAME_SIZE];
	struct lock_claim claim;

	lock_look_read_words(&look);
	// pthread_join waits in the thread's own descriptor.
	const bool is_join = look.thread_tid != 0;
	lock_claim_read(&look, is_join ? LOCK_HINT_JOIN : LOCK_HINT_NONE, is_target_thread,
	                (void *)target, &claim);
	if (claim.owner && holder_names_read(names, target->pid, claim.owner, name))
		return is_join ? memory_printf("the end of \"%s\" %d", name, claim.owner)
		               : memory_printf("%s 0x%" PRIx64 ", held by \"%s\" %d",
		                               lock_what_name(claim.what), claim.address, name,
		                               claim.owner);
	return is_contended(&look) ? memory_printf("0x%" PRIx64, look.call.args[0]) : NULL;
}

// True if the thread shares the descriptors of its process, as nearly all do. kcmp(2) takes half a
// microsecond; reading the thread's own descriptors through /proc takes ten.
static bool has_common_files(const struct target *target, const struct target_thread *thread)
{
	return thread->tid == target->pid ||
	       syscall(SYS_kcmp, target->pid, thread->tid, KCMP_FILES, 0, 0) == 0;
}

static bool open_fds(struct wait_reasons *waits, const struct target *target)
{
	char path[64];

	if (waits->fds_fd >= 0)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/fd", target->pid);
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= target->max_kept_fd)
		close(fd);
	else
		waits->fds_fd = fd;
	return waits->fds_fd >= 0;
}

static ssize_t read_link(struct wait_reasons *waits, const struct target *target,
                         const struct target_thread *thread, int fd, char *ret, size_t size)
{
	char path[64];
	ssize_t n = -1;

	snprintf(path, sizeof(path), "%d", fd);
	if (has_common_files(target, thread) && open_fds(waits, target))
		n = readlinkat(waits->fds_fd, path, ret, size);
	if (n > 0)
		return n;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", target->pid, thread->tid, fd);
	return readlink(path, ret, size);
}

// False if it is in a pid namespace of its own: the tids in its locks are not those that we know.
static bool has_our_tids(struct wait_reasons *waits, const struct target *target)
{
	struct proc_status status;

	if (!waits->knows_tids) {
		waits->has_our_tids =
		    proc_read_status(target->pid, &status) && !status.has_own_pids;
		waits->knows_tids = true;
	}
	return waits->has_our_tids;
}

// Describes a lock of a language's runtime, or of the C library; a new string, NULL if it is not
// one.
static char *describe_futex(struct wait_reasons *waits, const struct target *target,
                            const struct target_thread *thread)
{
	char *name = NULL;

	if (thread->call.nr == SYS_futex && target->runtimes)
		name = runtimes_name_futex(target->runtimes, thread->tid, thread->call.args[0]);
	if (!name && thread->call.nr == SYS_futex && waits->locks && has_our_tids(waits, target))
		name = lock_name_futex(target, thread, &waits->holders);
	return name;
}

// Describes the thread's descriptor; a new string, NULL if it cannot be read.
static char *describe_descriptor(struct wait_reasons *waits, const struct target *target,
                                 const struct target_thread *thread, int fd)
{
	char link[PATH_MAX];
	const ssize_t n = read_link(waits, target, thread, fd, link, sizeof(link) - 1);

	if (n <= 0)
		return NULL;
	link[n] = '\0';
	char *text = shorten(link);
	if (text[0] == '/' && descriptor_kind(thread->tid, fd) == DESCRIPTOR_PIPE) {
		char *path = text;
		text = memory_printf("fifo %s", path);
		free(path);
	}
	return text;
}

// Describes the lock of a file that is waited for, and which process has it; a new string, NULL if
// that is not known.
static char *describe_file_lock(struct wait_reasons *waits, const struct target *target,
                                const struct target_thread *thread)
{
	const struct file_lock_wait wait = {.pid = target->pid,
	                                    .is_flock = thread->call.nr == SYS_flock};
	char name[PROC_NAME_SIZE];
	int pids[2];

	if (!waits->locks || !has_our_tids(waits, target))
		return NULL;
	_cleanup_free_ char *table = file_locks_read();
	if (!table || file_locks_find(table, &wait, pids, array_size(pids)) != 1 || pids[0] <= 0 ||
	    !proc_read_name(pids[0], pids[0], name))
		return NULL;
	_cleanup_free_ char *file =
	    describe_descriptor(waits, target, thread, (int)thread->call.args[0]);
	return memory_printf(WAIT_FILE_LOCK "%s" WAIT_FILE_LOCK_HOLDER "\"%s\" %d", file ?: "",
	                     name, pids[0]);
}

// Describes the process that is waited for; a new string, NULL if its name is not known.
static char *describe_child(struct wait_reasons *waits, const struct target *target,
                            const struct target_thread *thread)
{
	const uint64_t *args = thread->call.args;
	char name[PROC_NAME_SIZE];
	size_t n;

	int pid = thread->call.nr == SYS_wait4 ? (int)args[0]
	          : args[0] == P_PID           ? (int)args[1]
	                                       : -1;
	if (!waits->locks || !has_our_tids(waits, target))
		return pid == -1 ? memory_strdup(WAIT_ANY_CHILD) : NULL;
	if (pid == -1) { // any child: if it has but one, that
		_cleanup_free_ int *children = process_children(target->pid, &n);
		pid = n == 1 ? children[0] : -1;
	}
	return pid > 0 && proc_read_name(pid, pid, name)
	           ? memory_printf("the end of \"%s\" %d", name, pid)
	       : pid == -1 ? memory_strdup(WAIT_ANY_CHILD)
	                   : NULL;
}

// Describes the descriptor, and says how many others are waited for; a new string, NULL if there is
// nothing to say, as of most waits: an empty string of its own for each copy costs as much as one
// of its system calls.
static char *describe(struct wait_reasons *waits, const struct target *target,
                      const struct target_thread *thread)
{
	size_t more = 0;
	const int fd = descriptor_of(thread, &more);

	if (thread->call.nr == SYS_wait4 || thread->call.nr == SYS_waitid)
		return describe_child(waits, target, thread);
	if (fd == SLEEPS)
		return memory_strdup(WAIT_NO_DESCRIPTOR);
	if (fd == NO_DESCRIPTOR)
		return describe_futex(waits, target, thread);
	char *text = NULL;
	if (thread->call.nr == SYS_flock || thread->call.nr == SYS_fcntl)
		text = describe_file_lock(waits, target, thread);
	if (!text)
		text = describe_descriptor(waits, target, thread, fd);
	if (more == 0 || !text)
		return text;
	char *longer = memory_printf("%s +%zu", text, more);
	free(text);
	return longer;
}

// Takes the names out of "[<0>] futex_wait_queue+0x64/0x90" lines, each with a newline.
static char *kernel_functions(char *text)
{
	_cleanup_free_ char *names = memory_alloc(strlen(text) + 2);
	char *end = names, *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *name = strstr(line, "] ");
		name = name ? name + 2 : line;
		const size_t length = strcspn(name, "+ ");
		if (length == 0)
			continue;
		end = mempcpy(end, name, length);
		*end++ = '\n';
	}
	*end = '\0';
	return take_pointer(names);
}

// NULL: they are not wanted.
static char *read_kernel_frames(struct wait_reasons *waits, const struct target *target,
                                const struct target_thread *thread)
{
	char text[STACK_SIZE];

	if (!waits->kernel)
		return NULL;
	_cleanup_close_ int fd = proc_open(target->pid, thread->tid, "stack");
	const ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	return kernel_functions(text);
}

// True if the thread has slept on since it was looked at.
static bool sleeps_still(const struct target *target, const struct target_thread *thread)
{
	struct proc_schedstat stat;

	return proc_read_schedstat(thread->schedstat_fd, target->pid, thread->tid, &stat) &&
	       stat.runs == thread->sleep.runs;
}

static bool is_socket(const char *descriptor)
{
	return text_begins_with(descriptor, "socket:[");
}

static void note_socket(struct wait_reasons *waits, uint32_t wait)
{
	const struct wait *entry = &waits->profile->waits[wait];

	if (waits->locks)
		wait_peers_note(&waits->peers, waits->profile, wait);
	if (!is_socket(entry->descriptor) || entry->meaning || waits->n_unnamed >= MAX_UNNAMED)
		return;
	while (waits->n_noted <= wait)
		*array_push(waits->noted, waits->n_noted, waits->noted_capacity) = false;
	if (waits->noted[wait])
		return;
	waits->noted[wait] = true;
	*array_push(waits->unnamed, waits->n_unnamed, waits->unnamed_capacity) = wait;
}

uint32_t wait_reasons_read(struct wait_reasons *waits, const struct target *target,
                           const struct target_thread *thread)
{
	const int64_t nr = thread->call.nr;
	const int number = nr >= 0 && nr <= SYSCALL_MAX_NUMBER ? (int)nr : NO_SYSCALL;
	_cleanup_free_ char *descriptor = describe(waits, target, thread);
	_cleanup_free_ char *frames = read_kernel_frames(waits, target, thread);

	const bool holds = (!descriptor && !frames) || sleeps_still(target, thread);
	if (holds && frames && !frames[0])
		waits->stats->kernel_hidden = true;
	const uint32_t wait =
	    profile_intern_wait(waits->profile, number, holds && descriptor ? descriptor : "",
	                        holds && frames ? frames : "");
	if (wait != WAIT_NONE)
		note_socket(waits, wait);
	return wait;
}

bool wait_reasons_has_holder(struct target *target, const struct target_thread *thread,
                             const struct wait *wait)
{
	const uint32_t holder = (uint32_t)wait_holder(wait);
	uint32_t words[LOCK_WORDS];

	if (holder == 0 || !resident_read(&target->resident, thread->tid,
	                                  thread->call.args[0] - LOCK_WORDS_BEFORE * sizeof(*words),
	                                  words, sizeof(words)))
		return false;
	for (size_t i = 0; i < array_size(words); i++)
		if ((words[i] & FUTEX_TID_MASK) == holder)
			return true;
	return false;
}

uint32_t wait_reasons_of_reason(struct wait_reasons *waits, const struct target *target,
                                const char *reason, int descriptor)
{
	// Any thread that shares the process's descriptors does: Go's runtime lets no thread have
	// its own.
	const struct target_thread thread = {.tid = target_live_tid(target)};
	_cleanup_free_ char *text = describe_descriptor(waits, target, &thread, descriptor);
	const uint32_t wait = profile_intern_reason(waits->profile, reason, text ? text : "");

	if (wait != WAIT_NONE)
		note_socket(waits, wait);
	return wait;
}

static void explain(struct wait_reasons *waits, uint32_t wait, const struct socket_wanted *socket)
{
	const struct wait *entry = &waits->profile->waits[wait];
	const char *end = strchr(entry->descriptor, ']');
	const char *other_end = entry->meaning ? strstr(entry->meaning, WAIT_OTHER_END) : NULL;

	if (!end)
		return;
	// A socket that is gone, or of another family, keeps its number, and is not looked up
	// again.
	_cleanup_free_ char *meaning =
	    memory_printf("%s%s%s", socket->meaning ?: entry->descriptor,
	                  socket->meaning ? end + 1 : "", other_end ?: "");
	profile_explain_descriptor(waits->profile, wait, meaning);
}

static void name_some(struct wait_reasons *waits, const struct target *target, int tid)
{
	const size_t n = waits->n_unnamed < MAX_NAMED ? waits->n_unnamed : MAX_NAMED;
	const size_t first = waits->n_unnamed - n;
	_cleanup_free_ struct socket_wanted *wanted = memory_alloc_zeroed(n, sizeof(*wanted));

	for (size_t i = 0; i < n; i++)
		sscanf(waits->profile->waits[waits->unnamed[first + i]].descriptor,
		       "socket:[%" SCNu64, &wanted[i].inode);
	sockets_find(target->pid, tid, wanted, n);
	for (size_t i = 0; i < n; i++) {
		explain(waits, waits->unnamed[first + i], &wanted[i]);
		free(wanted[i].meaning);
	}
	waits->n_unnamed = first;
}

void wait_reasons_name_sockets(struct wait_reasons *waits, const struct target *target, bool last)
{
	const int64_t now_ns = clock_now_ns();
	const int tid = target_live_tid(target);

	if (tid != 0)
		wait_peers_find(&waits->peers, waits->profile, target->pid, tid, last);
	if (waits->n_unnamed == 0 || tid == 0 || (now_ns < waits->next_ns && !last))
		return;
	do
		name_some(waits, target, tid);
	while (last && waits->n_unnamed > 0);
	const int64_t end_ns = clock_now_ns();
	waits->next_ns = end_ns + COST_FACTOR * (end_ns - now_ns);
}

enum { MAX_AGE_NS = 100 * NS_PER_MS };

bool holder_names_read(struct holder_names *names, int pid, int tid, char ret[PROC_NAME_SIZE])
{
	const unsigned int place = (unsigned int)tid % N_HOLDER_NAMES;
	const int64_t now_ns = clock_now_ns();

	if (names->items[place].tid != tid || now_ns >= names->items[place].due_ns) {
		names->items[place].tid = 0;
		if (!proc_read_name(pid, tid, names->items[place].name))
			return false;
		names->items[place].tid = tid;
		names->items[place].due_ns = now_ns + MAX_AGE_NS;
	}
	memcpy(ret, names->items[place].name, PROC_NAME_SIZE);
	return true;
}

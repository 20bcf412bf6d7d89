// SPDX-License-Identifier: MIT
#include "target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "diagnose.h"
#include "error.h"
#include "memory.h"
#include "order.h"

enum {
	RESERVED_FDS = 512, // for modules, output and the rest
	LIST_BYTES = 8192,
	MIN_FREE_FDS = 32,   // without them, calls that stops cut short could not be continued
	FEW_THREADS = 256,   // listing them takes some 0.1 ms
	LISTED_PER_LOOK = 6, // so many are listed in the time of a look whether there is a thread
};

// Allows as many files as the hard limit does: two or three for each thread are kept open.
static int raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 0;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < 2 * (rlim_t)RESERVED_FDS)
		return 0;
	return limit.rlim_cur < INT_MAX ? (int)limit.rlim_cur - RESERVED_FDS : INT_MAX;
}

static int open_task_directory(int pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

// Where none is free, whatever is asked of the kernel fails, for other reasons as it seems.
static struct error *check_fd_limit(void)
{
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct rlimit limit;

	if (fd >= 0)
		close(fd);
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
	    (fd >= 0 ? (rlim_t)fd + MIN_FREE_FDS < limit.rlim_cur : errno != EMFILE))
		return NULL;
	return error_create(EXIT_STATUS_TARGET,
	                    "the limit of open files (%ju) is too low to sample without disturbing "
	                    "system calls: raise it (ulimit -n)",
	                    (uintmax_t)limit.rlim_cur);
}

struct error *target_open(int pid, bool is_ours, struct target *ret)
{
	const int max_kept_fd = raise_fd_limit();

	struct error *error = check_fd_limit();
	if (!error)
		error = diagnose_target(pid, &pid);
	if (error)
		return error;
	*ret = (struct target){
	    .pid = pid,
	    .task_fd = open_task_directory(pid),
	    .max_kept_fd = max_kept_fd,
	    .sees_syscalls = true,
	    .sees_schedstat = true,
	    .tracer_pid = is_ours ? 0 : diagnose_tracer(pid),
	};
	resident_init(&ret->resident, pid);
	if (ret->task_fd < 0) {
		target_close(ret);
		return diagnose_gone(pid);
	}
	target_list_threads(ret, -1);
	if (ret->n_threads == 0) {
		target_close(ret);
		return diagnose_gone(pid);
	}
	return NULL;
}

static void destroy_thread(struct target_thread *thread)
{
	if (thread->schedstat_fd >= 0)
		close(thread->schedstat_fd);
	if (thread->syscall_fd >= 0)
		close(thread->syscall_fd);
	if (thread->stat_fd >= 0)
		close(thread->stat_fd);
	free(thread->first_look.locations);
	snapshot_hint_deinit(&thread->hint);
	free(thread);
}

void target_close(struct target *target)
{
	for (size_t i = 0; i < target->n_threads; i++)
		destroy_thread(target->threads[i]);
	free(target->threads);
	if (target->task_fd >= 0)
		close(target->task_fd);
	resident_deinit(&target->resident);
	process_title_deinit(&target->title);
	*target = (struct target){.task_fd = -1};
}

int target_open_file(const struct target *target, int tid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/%s", tid, file);
	return openat(target->task_fd, path, O_RDONLY | O_CLOEXEC);
}

// The descriptor's number tells how many are open, for all processes together: the kernel hands out
// the lowest free one.
int target_open_kept(const struct target *target, int tid, const char *file)
{
	const int fd = target->max_kept_fd ? target_open_file(target, tid, file) : -1;

	if (fd < target->max_kept_fd)
		return fd;
	close(fd);
	return -1;
}

// Finds out which files of a thread we may read.
static void probe(struct target *target, int tid)
{
	struct proc_schedstat schedstat;
	struct proc_syscall call;
	struct proc_stat stat;

	target->sees_schedstat =
	    proc_read_schedstat(-1, target->pid, tid, &schedstat) && proc_counts_runs();
	target->sees_syscalls = proc_read_syscall(-1, target->pid, tid, &call);
	if (!proc_read_stat(-1, target->pid, tid, &stat)) // gone: the next thread will tell
		target->sees_schedstat = target->sees_syscalls = true;
}

// Appends the thread, unless it is gone already.
static bool add_thread(struct target *target, int tid)
{
	struct target_thread *thread = memory_alloc_zeroed(1, sizeof(*thread));
	struct proc_stat stat;
	struct utsname kernel;

	thread->tid = tid;
	thread->listed = true;
	thread->syscall_fd = thread->stat_fd = -1;
	thread->schedstat_fd = target_open_kept(target, tid, "schedstat");
	thread->has_schedstat =
	    proc_read_schedstat(thread->schedstat_fd, target->pid, tid, &thread->last);
	// A main thread that has exited stays listed until the last thread ends.
	if (!proc_read_stat(-1, target->pid, tid, &stat) || stat.state == 'Z' ||
	    stat.state == 'X') {
		destroy_thread(thread);
		return false;
	}
	thread->is_kernels = uname(&kernel) == 0 && proc_is_kernels(stat.flags, kernel.release);
	if (target->n_threads == 0)
		probe(target, tid);
	if (target->sees_syscalls)
		thread->syscall_fd = target_open_kept(target, tid, "syscall");
	*array_push(target->threads, target->n_threads, target->threads_capacity) = thread;
	return true;
}

// Appends the tids of some directory entries.
static size_t add_tids(const struct target *target, const uint8_t *entries, size_t size, int **tids,
                       size_t count, size_t *capacity)
{
	for (size_t at = 0; at < size;) {
		const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
		const int tid = atoi(entry->d_name);
		if (tid > 0)
			*array_push(*tids, count, *capacity) = tid;
		at += entry->d_reclen;
		target_attend(target, count);
	}
	return count;
}

// The kernel lists the main thread's tid twice if another thread gets it meanwhile, in exec.
static size_t drop_repeated(int *tids, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (kept == 0 || tids[i] != tids[kept - 1])
			tids[kept++] = tids[i];
	return kept;
}

// Returns the tids that /proc/PID/task lists, sorted; the caller frees. NULL if the kernel cannot
// list them now. Opens nothing, so that a lack of descriptors does not look like the process's end.
static int *read_tids(const struct target *target, size_t *ret_count)
{
	_Alignas(struct dirent64) uint8_t entries[LIST_BYTES];
	size_t count = 0, capacity = 0;
	ssize_t n = lseek(target->task_fd, 0, SEEK_SET);
	int *tids = memory_grow(NULL, &capacity, target->n_threads + 1, sizeof(*tids));

	while (n >= 0 && (n = getdents64(target->task_fd, entries, sizeof(entries))) > 0)
		count = add_tids(target, entries, (size_t)n, &tids, count, &capacity);
	if (n < 0 && errno != ENOENT) { // ENOENT: the process has ended
		free(tids);
		return NULL;
	}
	qsort(tids, count, sizeof(*tids), order_of_ints);
	*ret_count = drop_repeated(tids, count);
	return tids;
}

static bool has_thread(const struct target *target, int tid)
{
	for (size_t i = 0; i < target->n_threads; i++)
		if (target->threads[i]->tid == tid)
			return true;
	return false;
}

// Appends the threads that have one of the pids given out since the last listing.
static size_t add_latest(struct target *target, long last_pid)
{
	struct stat status;
	char name[32];
	size_t n_new = 0;

	for (long pid = target->last_pid + 1; pid <= last_pid; pid++) {
		snprintf(name, sizeof(name), "%ld", pid);
		// The listing may have come after its pid was read.
		if (fstatat(target->task_fd, name, &status, 0) == 0 &&
		    !has_thread(target, (int)pid))
			n_new += add_thread(target, (int)pid);
	}
	return n_new;
}

static size_t list_all(struct target *target)
{
	size_t n_tids, n_new = 0;

	_cleanup_free_ int *tids = read_tids(target, &n_tids);
	if (!tids) {
		target->n_links = 0; // ask again at the next tick
		return 0;
	}
	_cleanup_free_ bool *known = memory_alloc_zeroed(n_tids, sizeof(*known));
	for (size_t i = 0; i < target->n_threads; i++) {
		struct target_thread *thread = target->threads[i];
		int *found = bsearch(&thread->tid, tids, n_tids, sizeof(*tids), order_of_ints);
		// If a thread is gone and listed, another one has got its tid.
		thread->listed = found != NULL && !thread->gone;
		if (thread->listed)
			known[found - tids] = true;
	}
	for (size_t i = 0; i < n_tids; i++) {
		if (!known[i])
			n_new += add_thread(target, tids[i]);
		target_attend(target, i);
	}
	return n_new;
}

// How much has to be read to find the new threads.
enum listing { LIST_NOTHING, LIST_LATEST, LIST_ALL };

// The number of threads alone does not tell: one may be born as another ends. But then a pid was
// given out.
static enum listing choose_listing(const struct target *target, bool same_number, long last_pid)
{
	const bool known = last_pid >= 0 && target->last_pid >= 0;
	const long n_pids = last_pid - target->last_pid; // negative: they begin anew

	if (!same_number)
		return LIST_ALL;
	if (!known)
		return target->n_threads < FEW_THREADS ? LIST_ALL : LIST_NOTHING;
	if (n_pids == 0)
		return LIST_NOTHING;
	return n_pids > 0 && (size_t)n_pids * LISTED_PER_LOOK < target->n_threads ? LIST_LATEST
	                                                                          : LIST_ALL;
}

size_t target_list_threads(struct target *target, long last_pid)
{
	struct stat status;
	bool same_number = false;
	size_t n_new = 0;

	if (fstat(target->task_fd, &status) == 0) {
		same_number = status.st_nlink == target->n_links;
		target->n_links = status.st_nlink;
	}
	switch (choose_listing(target, same_number, last_pid)) {
	case LIST_ALL:
		n_new = list_all(target);
		break;
	case LIST_LATEST:
		n_new = add_latest(target, last_pid);
		break;
	case LIST_NOTHING:
		break;
	}
	target->last_pid = last_pid;
	return n_new;
}

bool target_has_gone(const struct target *target)
{
	bool has = false;

	for (size_t i = 0; i < target->n_threads; i++) {
		has |= target_thread_is_over(target->threads[i]);
		target_attend(target, i);
	}
	return has;
}

void target_forget_gone(struct target *target)
{
	size_t kept = 0;

	for (size_t i = 0; i < target->n_threads; i++) {
		struct target_thread *thread = target->threads[i];
		if (target_thread_is_over(thread))
			destroy_thread(thread);
		else
			target->threads[kept++] = thread;
	}
	target->n_threads = kept;
}

int target_live_tid(const struct target *target)
{
	for (size_t i = 0; i < target->n_threads; i++)
		if (!target->threads[i]->gone)
			return target->threads[i]->tid;
	return 0;
}

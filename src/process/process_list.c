// SPDX-License-Identifier: MIT
#include "process_list.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"
#include "order.h"
#include "proc.h"

struct list {
	int *items;
	size_t count, capacity;
};

static void push(struct list *list, int id)
{
	if (id > 0 && list->count < PROCESS_LIST_MAX)
		*array_push(list->items, list->count, list->capacity) = id;
}

// Returns the numbers among the directory's names.
static int *read_numbers(const char *path, size_t *ret_count)
{
	struct list list = {0};
	DIR *directory = opendir(path);

	for (const struct dirent *entry; directory && (entry = readdir(directory));)
		push(&list, atoi(entry->d_name));
	if (directory)
		closedir(directory);
	*ret_count = list.count;
	return list.items;
}

int *process_threads(int pid, size_t *ret_count)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return read_numbers(path, ret_count);
}

// False: the thread has ended. *ret_n_threads, those of its process, is set if /proc shows it.
static bool lives(int pid, int tid, uint64_t *ret_n_threads)
{
	struct proc_stat stat;

	if (!proc_read_stat(-1, pid, tid, &stat))
		return false;
	*ret_n_threads = stat.n_threads;
	return stat.state != 'Z' && stat.state != 'X';
}

int process_living_thread(int pid)
{
	uint64_t n_threads = 0;
	size_t n;

	if (lives(pid, pid, &n_threads))
		return pid;
	if (n_threads <= 1) // the main thread counts until the process has been waited for
		return 0;
	_cleanup_free_ int *tids = process_threads(pid, &n);
	for (size_t i = 0; i < n; i++)
		if (lives(pid, tids[i], &n_threads))
			return tids[i];
	return 0;
}

int *process_all(size_t *ret_count)
{
	int *pids = read_numbers("/proc", ret_count);

	if (*ret_count > 1)
		qsort(pids, *ret_count, sizeof(*pids), order_of_ints);
	return pids;
}

// Adds one thread's children: the kernel lists those of each thread separately.
static void push_children(struct list *list, int pid, int tid)
{
	_cleanup_close_ int fd = proc_open(pid, tid, "children");
	_cleanup_fclose_ FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	int child;

	if (!file)
		return;
	fd = -1; // it belongs to the file now
	while (fscanf(file, "%d", &child) == 1)
		push(list, child);
}

static void push_all_children(struct list *list, int pid)
{
	size_t n;
	_cleanup_free_ int *tids = process_threads(pid, &n);

	for (size_t i = 0; i < n; i++)
		push_children(list, pid, tids[i]);
}

int *process_children(int pid, size_t *ret_count)
{
	struct list list = {0};

	push_all_children(&list, pid);
	*ret_count = list.count;
	return list.items;
}

int *process_tree(int pid, size_t *ret_count)
{
	struct list list = {0};

	push(&list, pid);
	for (size_t i = 0; i < list.count; i++)
		push_all_children(&list, list.items[i]);
	*ret_count = list.count;
	return list.items;
}

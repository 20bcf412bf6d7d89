// SPDX-License-Identifier: MIT
#include "file_locks.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "text.h"

enum {
	MAX_TABLE_BYTES = 4 << 20,
	FDINFO_BYTES = 4096,
	MAX_DESCRIPTORS = 1 << 20, // of all processes; no more are looked at
};

static char *read_whole(const char *path, size_t max)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	size_t size = 0, capacity = 0;
	ssize_t n = 1;

	if (fd < 0)
		return NULL;
	while (n > 0 && size < max) {
		text = memory_grow(text, &capacity, size + FDINFO_BYTES, 1);
		n = read(fd, text + size, capacity - size - 1);
		size += n > 0 ? (size_t)n : 0;
	}
	text[size] = '\0';
	return take_pointer(text);
}

char *file_locks_read(void)
{
	return read_whole("/proc/locks", MAX_TABLE_BYTES);
}

// "3: POSIX  ADVISORY  WRITE 1234 08:01:4711 0 EOF"; a row that waits for it has "3: -> POSIX ...".
struct row {
	unsigned long long number;
	bool waits, is_flock;
	int pid;
	uint64_t inode;
};

static bool parse_row(const char *line, struct row *ret)
{
	char kind[16];
	int at = 0;
	unsigned int major, minor;

	if (sscanf(line, "%llu: %n", &ret->number, &at) != 1 || at == 0)
		return false;
	line += at;
	ret->waits = strncmp(line, "->", 2) == 0;
	line += ret->waits ? 2 : 0;
	if (sscanf(line, " %15s %*s %*s %d %x:%x:%" SCNu64, kind, &ret->pid, &major, &minor,
	           &ret->inode) != 5)
		return false;
	ret->is_flock = strcmp(kind, "FLOCK") == 0;
	return true;
}

static bool is_wait(const struct row *row, const struct file_lock_wait *wait)
{
	return row->waits && row->pid == wait->pid && row->is_flock == wait->is_flock &&
	       (wait->inode == 0 || row->inode == wait->inode);
}

// A lock's row comes before the rows that wait for it, with the same number.
size_t file_locks_find(const char *table, const struct file_lock_wait *wait, int *ret_pids,
                       size_t max)
{
	struct row row, holder = {0};
	bool has_holder = false;
	size_t n = 0;

	for (const char *line = table; line && *line && n < max; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!parse_row(line, &row))
			continue;
		if (!row.waits) {
			holder = row;
			has_holder = true;
		} else if (has_holder && holder.number == row.number && is_wait(&row, wait)) {
			ret_pids[n++] = holder.pid;
			has_holder = false;
		}
	}
	return n;
}

static bool shows_lock(const char *path, uint64_t inode)
{
	_cleanup_free_ char *text = read_whole(path, FDINFO_BYTES);
	struct row row;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		static const char key[] = "lock:";
		line += *line == '\n';
		if (text_begins_with(line, key) &&
		    parse_row(line + strlen(key) + strspn(line + strlen(key), "\t "), &row) &&
		    row.is_flock && row.inode == inode)
			return true;
	}
	return false;
}

// True if a descriptor of the process shows such a lock.
static bool has_lock(const char *pid, uint64_t inode, size_t *n_looks)
{
	_cleanup_free_ char *path = memory_printf("/proc/%s/fdinfo", pid);
	DIR *directory = opendir(path);
	bool found = false;

	for (const struct dirent *entry; directory && !found && (entry = readdir(directory));) {
		if (entry->d_name[0] == '.' || ++*n_looks > MAX_DESCRIPTORS)
			continue;
		_cleanup_free_ char *file = memory_printf("%s/%s", path, entry->d_name);
		found = shows_lock(file, inode);
	}
	if (directory)
		closedir(directory);
	return found;
}

bool file_locks_is_sole(int pid, uint64_t inode)
{
	DIR *directory = opendir("/proc");
	bool own = false, other = false;
	size_t n_looks = 0;

	for (const struct dirent *entry; directory && (entry = readdir(directory));) {
		const int id = atoi(entry->d_name);
		if (id <= 0 || !has_lock(entry->d_name, inode, &n_looks))
			continue;
		own |= id == pid;
		other |= id != pid;
	}
	if (directory)
		closedir(directory);
	return own && !other && n_looks <= MAX_DESCRIPTORS;
}

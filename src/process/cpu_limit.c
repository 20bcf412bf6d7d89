// SPDX-License-Identifier: MIT
#include "cpu_limit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "mounts.h"
#include "proc.h"

enum { MAX_TEXT_BYTES = 4096, MAX_CGROUPS_BYTES = 1 << 16, NS_PER_US = 1000 };

// Tells whether the word is in the list, which has commas between words, and ends where `end` says.
static bool has_word(const char *list, const char *end, const char *word)
{
	const size_t length = strlen(word);

	while (list < end) {
		const size_t n = strcspn(list, ",:\n");
		if (n == length && strncmp(list, word, n) == 0)
			return true;
		list += n + 1;
	}
	return false;
}

// Returns the path in the hierarchy that has the controller "cpu", in ID:CONTROLLERS:PATH; else in
// that of version 2, 0::PATH. The caller frees; NULL: there is none.
static char *find_path(const char *cgroups, bool *ret_is_v2)
{
	const char *found = NULL;

	for (const char *line = cgroups; *line; line += strcspn(line, "\n")) {
		line += *line == '\n';
		const char *controllers = line + strcspn(line, ":\n");
		const char *path = *controllers == ':'
		                       ? controllers + 1 + strcspn(controllers + 1, ":\n")
		                       : controllers;
		if (*path != ':' || path[1] != '/')
			continue;
		const bool is_v1 = has_word(controllers + 1, path, "cpu");
		if (!is_v1 && (found || strncmp(line, "0::", 3) != 0))
			continue;
		found = path + 1;
		*ret_is_v2 = !is_v1;
		if (is_v1)
			break;
	}
	return found ? memory_strndup(found, strcspn(found, "\n")) : NULL;
}

static const struct mount *find_mount(const struct mounts *mounts, bool is_v2)
{
	for (size_t i = 0; i < mounts->count; i++) {
		const struct mount *mount = &mounts->items[i];
		if (is_v2 ? strcmp(mount->type, "cgroup2") == 0
		          : strcmp(mount->type, "cgroup") == 0 &&
		                has_word(mount->options, mount->options + strlen(mount->options),
		                         "cpu"))
			return mount;
	}
	return NULL;
}

// Returns the part of the path below what the mount shows; NULL: it does not show it, as of another
// container's group.
static const char *below(const char *path, const char *root)
{
	const size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, length) != 0 || (path[length] && path[length] != '/') ||
	    strstr(path, "/.."))
		return NULL;
	return path + length;
}

// Reads the first bytes of the file as a text.
static bool read_text(int fd, char ret[MAX_TEXT_BYTES])
{
	const ssize_t n = fd < 0 ? -1 : pread(fd, ret, MAX_TEXT_BYTES - 1, 0);

	ret[n > 0 ? n : 0] = '\0';
	return n > 0;
}

// Finds the number behind the name, at the beginning of a line.
static bool find_number(const char *text, const char *name, uint64_t *ret)
{
	const size_t length = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) == 0 && line[length] == ' ')
			return sscanf(line + length, " %" SCNu64, ret) == 1;
	}
	return false;
}

static bool read_throttling(int fd, struct cpu_throttling *ret)
{
	char text[MAX_TEXT_BYTES];
	uint64_t time = 0;

	*ret = (struct cpu_throttling){0};
	if (!read_text(fd, text) || !find_number(text, "nr_periods", &ret->n_periods) ||
	    !find_number(text, "nr_throttled", &ret->n_throttled))
		return false;
	if (find_number(text, "throttled_usec", &time) &&
	    time <= INT64_MAX / NS_PER_US) // version 2
		ret->throttled_ns = (int64_t)time * NS_PER_US;
	else if (find_number(text, "throttled_time", &time) && time <= INT64_MAX)
		ret->throttled_ns = (int64_t)time;
	return true;
}

static int open_in(const char *directory, const char *name)
{
	_cleanup_free_ char *path = memory_printf("%s/%s", directory, name);

	return open(path, O_RDONLY | O_CLOEXEC);
}

static void add_group(struct cpu_limit *limit, const char *point, const char *path, size_t length)
{
	_cleanup_free_ char *directory = memory_printf("%s%.*s", point, (int)length, path);
	struct cpu_limit_group group = {.fd = open_in(directory, "cpu.stat")};

	if (!read_throttling(group.fd, &group.first)) { // the root of version 2 has no periods
		if (group.fd >= 0)
			close(group.fd);
		return;
	}
	group.directory = take_pointer(directory);
	limit->groups[limit->n_groups++] = group;
}

static void add_groups(struct cpu_limit *limit, const char *point, const char *path)
{
	size_t length = strlen(path);

	while (length > 0 && path[length - 1] == '/')
		length--;
	while (limit->n_groups < CPU_LIMIT_MAX_GROUPS) {
		add_group(limit, point, path, length);
		if (length == 0)
			return;
		while (path[--length] != '/')
			;
	}
}

void cpu_limit_open_with(const char *cgroups, const struct mounts *mounts, struct cpu_limit *ret)
{
	bool is_v2 = false;
	_cleanup_free_ char *path = find_path(cgroups, &is_v2);
	const struct mount *mount = path ? find_mount(mounts, is_v2) : NULL;

	*ret = (struct cpu_limit){0};
	const char *rest = mount ? below(path, mount->root) : NULL;
	if (rest)
		add_groups(ret, mount->point, rest);
}

void cpu_limit_open(int pid, struct cpu_limit *ret)
{
	size_t size;
	_cleanup_free_ char *cgroups = proc_read_whole(pid, "cgroup", MAX_CGROUPS_BYTES, &size);
	struct mounts mounts;

	mounts_read(getpid(), &mounts);
	cpu_limit_open_with(cgroups ?: "", &mounts, ret);
	mounts_deinit(&mounts);
}

void cpu_limit_close(struct cpu_limit *limit)
{
	for (size_t i = 0; i < limit->n_groups; i++) {
		free(limit->groups[i].directory);
		close(limit->groups[i].fd);
	}
	*limit = (struct cpu_limit){0};
}

static uint32_t share_of(uint64_t quota, uint64_t period)
{
	const uint64_t limit = period > 0 && quota <= UINT32_MAX ? quota * 1000 / period : 0;

	return limit <= UINT32_MAX ? (uint32_t)limit : 0;
}

// Returns what the group may use, in thousandths of a CPU; 0: it has no limit, or it is not known.
static uint32_t read_limit(const struct cpu_limit_group *group)
{
	_cleanup_close_ int both = open_in(group->directory, "cpu.max"); // version 2
	_cleanup_close_ int quota_fd = open_in(group->directory, "cpu.cfs_quota_us");
	_cleanup_close_ int period_fd = open_in(group->directory, "cpu.cfs_period_us");
	char text[MAX_TEXT_BYTES];
	uint64_t quota = 0, period = 0;

	if (read_text(both, text)) // "max 100000" has no number in front
		return sscanf(text, "%" SCNu64 " %" SCNu64, &quota, &period) == 2
		           ? share_of(quota, period)
		           : 0;
	if (!read_text(quota_fd, text) || text[0] == '-' || sscanf(text, "%" SCNu64, &quota) != 1)
		return 0;
	return read_text(period_fd, text) && sscanf(text, "%" SCNu64, &period) == 1
	           ? share_of(quota, period)
	           : 0;
}

void cpu_limit_read(const struct cpu_limit *limit, struct cpu_throttling *ret, uint32_t *ret_limit)
{
	const struct cpu_limit_group *longest = NULL;

	*ret = (struct cpu_throttling){0};
	*ret_limit = 0;
	for (size_t i = 0; i < limit->n_groups; i++) {
		const struct cpu_limit_group *group = &limit->groups[i];
		struct cpu_throttling now;
		if (!read_throttling(group->fd, &now) || now.n_periods <= group->first.n_periods ||
		    now.n_throttled < group->first.n_throttled ||
		    now.throttled_ns < group->first.throttled_ns)
			continue; // nothing new, or the group is gone
		now.n_periods -= group->first.n_periods;
		now.n_throttled -= group->first.n_throttled;
		now.throttled_ns -= group->first.throttled_ns;
		if (longest && now.throttled_ns <= ret->throttled_ns)
			continue;
		longest = group;
		*ret = now;
	}
	if (longest)
		*ret_limit = read_limit(longest);
}

// SPDX-License-Identifier: MIT
#include "mounts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "memory.h"
#include "regular_file.h"

enum { MAX_TEXT_BYTES = 8 << 20, LINE_FIELDS = 6, NAME_SIZE = 64 };

void mounts_deinit(struct mounts *mounts)
{
	free(mounts->text);
	free(mounts->items);
	*mounts = (struct mounts){0};
}

// Parses ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - TYPE SOURCE SUPER-OPTIONS
static bool parse_line(char *line, struct mount *ret)
{
	char *fields[LINE_FIELDS], *save = NULL, *end = strstr(line, " - ");
	unsigned int major_nr, minor_nr;

	if (!end)
		return false;
	*end = '\0';
	for (size_t i = 0; i < LINE_FIELDS; i++) {
		fields[i] = strtok_r(i == 0 ? line : NULL, " ", &save);
		if (!fields[i])
			return false;
	}
	const char *type = strtok_r(end + 3, " ", &save);
	const char *source = strtok_r(NULL, " ", &save), *options = strtok_r(NULL, " ", &save);
	if (!type || !source || sscanf(fields[2], "%u:%u", &major_nr, &minor_nr) != 2)
		return false;
	*ret = (struct mount){
	    .id = atoi(fields[0]),
	    .device = makedev(major_nr, minor_nr),
	    .root = fields[3],
	    .point = fields[4],
	    .type = type,
	    .options = options ?: "",
	};
	return true;
}

void mounts_parse(char *text, struct mounts *ret)
{
	char *save = NULL;

	*ret = (struct mounts){.text = text};
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct mount mount;
		if (parse_line(line, &mount))
			*array_push(ret->items, ret->count, ret->capacity) = mount;
	}
}

void mounts_read(int tid, struct mounts *ret)
{
	char path[32], *text = NULL;
	size_t size = 0, capacity = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", tid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	do {
		text = memory_grow(text, &capacity, size + (16 << 10), 1);
		n = fd < 0 ? 0 : read(fd, text + size, capacity - size - 1);
		size += n > 0 ? (size_t)n : 0;
	} while (n > 0 && size < MAX_TEXT_BYTES);
	text[size] = '\0';
	mounts_parse(text, ret);
}

const struct mount *mounts_of_device(const struct mounts *mounts, uint64_t device)
{
	for (size_t i = 0; i < mounts->count; i++)
		if (mounts->items[i].device == device)
			return &mounts->items[i];
	return NULL;
}

const struct mount *mounts_by_id(const struct mounts *mounts, int id)
{
	for (size_t i = 0; i < mounts->count; i++)
		if (mounts->items[i].id == id)
			return &mounts->items[i];
	return NULL;
}

const struct mount *mounts_of_path(const struct mounts *mounts, const char *path)
{
	const struct mount *best = NULL;
	size_t longest = 0;

	for (size_t i = 0; i < mounts->count; i++) {
		const char *point = mounts->items[i].point;
		const size_t length = strcmp(point, "/") == 0 ? 0 : strlen(point);
		if (strncmp(path, point, length) != 0 || (path[length] != '/' && path[length]))
			continue;
		if (best && length < longest)
			continue; // of two equal ones, the later hides the earlier
		best = &mounts->items[i];
		longest = length;
	}
	return best;
}

// True for the mount that "/" lies on: if it does not answer, nothing on the machine runs.
static bool is_root(const struct mount *mount, const struct mounts *own)
{
	const struct mount *root = mounts_of_path(own, "/");

	return root && root->device == mount->device;
}

// True if the directory, as written in an overlay's option, lies on this machine.
static bool is_local_layer(const char *path, const struct mounts *own)
{
	const struct mount *mount =
	    path[0] == '/' && !strchr(path, '\\') ? mounts_of_path(own, path) : NULL;

	return mount && (regular_file_is_local_type(mount->type) || is_root(mount, own));
}

// True if all layers in an overlay's options lie on this machine: lowerdir=A:B:C, lowerdir+=A,
// datadir+=A, upperdir=A (Documentation/filesystems/overlayfs.rst).
static bool are_local_layers(const char *options, const struct mounts *own)
{
	_cleanup_free_ char *copy = memory_strdup(options);
	char *save = NULL, *save_path = NULL;
	bool any = false;

	for (char *option = strtok_r(copy, ",", &save); option;
	     option = strtok_r(NULL, ",", &save)) {
		char *value = strchr(option, '=');
		if (!value ||
		    (strncmp(option, "lowerdir", 8) != 0 && strncmp(option, "upperdir", 8) != 0 &&
		     strncmp(option, "datadir", 7) != 0))
			continue;
		for (char *path = strtok_r(value + 1, ":", &save_path); path;
		     path = strtok_r(NULL, ":", &save_path)) {
			if (!is_local_layer(path, own))
				return false;
			any = true;
		}
	}
	return any;
}

bool mounts_is_local(const struct mount *mount, const struct mounts *own)
{
	if (regular_file_is_local_type(mount->type) || is_root(mount, own))
		return true;
	return strcmp(mount->type, "overlay") == 0 && are_local_layers(mount->options, own);
}

// Reads the name of the user namespace; "": not known.
static void read_user_namespace(const char *path, char ret[NAME_SIZE])
{
	const ssize_t n = readlink(path, ret, NAME_SIZE - 1);

	ret[n > 0 ? n : 0] = '\0';
}

bool mounts_are_honest(int tid)
{
	char path[32], own[NAME_SIZE], theirs[NAME_SIZE];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", tid);
	read_user_namespace("/proc/self/ns/user", own);
	read_user_namespace(path, theirs);
	return own[0] && strcmp(own, theirs) == 0;
}

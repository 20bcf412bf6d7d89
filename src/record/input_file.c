// SPDX-License-Identifier: MIT
#include "input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/major.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "error.h"
#include "memory.h"
#include "regular_file.h"

const char *input_file_name(const char *path)
{
	return strcmp(path, "-") == 0 ? "stdin" : path;
}

static struct error *refuse(const char *path, const char *why)
{
	return error_create(EXIT_STATUS_TARGET, "cannot read %s: %s", input_file_name(path), why);
}

static bool is_stdin(const char *path)
{
	return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0;
}

// What it is that is not read.
static const char *name_kind(mode_t mode)
{
	if (S_ISDIR(mode))
		return "it is a directory";
	if (S_ISFIFO(mode))
		return "it is a named pipe: give it as standard input (-)";
	if (S_ISSOCK(mode))
		return "it is a socket";
	if (S_ISCHR(mode) || S_ISBLK(mode))
		return "it is a device";
	return "the kernel makes up what is in it";
}

// Such a pipe is had only from somebody who holds an end of it, and is opened without waiting.
static bool is_pipe_without_name(int fd, const struct stat *status)
{
	struct statfs system;

	return S_ISFIFO(status->st_mode) && fstatfs(fd, &system) == 0 &&
	       system.f_type == PIPEFS_MAGIC;
}

// Not with O_NONBLOCK, which a pipe would keep.
static int open_pipe(int path_fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

// The one device that has an end: nothing, to compare something with.
static bool is_null(const struct stat *status)
{
	return S_ISCHR(status->st_mode) && status->st_rdev == makedev(MEM_MAJOR, 3);
}

static struct error *open_stdin(const char *path, int *ret)
{
	struct stat status;

	_cleanup_close_ int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return refuse(path, strerror(errno));
	if (regular_file_look(fd, &status) == STORAGE_NONE && !S_ISFIFO(status.st_mode) &&
	    !S_ISSOCK(status.st_mode) && !is_null(&status))
		return refuse(path, name_kind(status.st_mode));
	*ret = fd;
	fd = -1;
	return NULL;
}

static struct error *open_path(const char *path, int *ret)
{
	struct stat status;

	_cleanup_close_ int path_fd = open(path, O_PATH | O_CLOEXEC);
	if (path_fd < 0)
		return refuse(path, strerror(errno));
	if (regular_file_look(path_fd, &status) != STORAGE_NONE || is_null(&status))
		*ret = regular_file_open(path_fd);
	else if (is_pipe_without_name(path_fd, &status))
		*ret = open_pipe(path_fd);
	else
		return refuse(path, name_kind(status.st_mode));
	return *ret < 0 ? refuse(path, strerror(errno)) : NULL;
}

struct error *input_file_read(const char *path, uint8_t **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size = 0, capacity = 0;
	ssize_t n;

	struct error *error = is_stdin(path) ? open_stdin(path, &fd) : open_path(path, &fd);
	if (error)
		return error;
	do {
		bytes = memory_grow(bytes, &capacity, size + (1 << 16), 1);
		n = read(fd, bytes + size, capacity - size);
		size += n > 0 ? n : 0;
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0)
		return refuse(path, strerror(errno));
	*ret = take_pointer(bytes);
	*ret_size = size;
	return NULL;
}

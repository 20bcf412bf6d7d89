// SPDX-License-Identifier: MIT
#include "input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/major.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "error.h"
#include "input_limit.h"
#include "memory.h"
#include "regular_file.h"

enum { PIECE_BYTES = 1 << 18 }; // stays in a CPU's cache until it has been looked at

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

// Returns why a file of this kind is not read.
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
	return "it is no file on a disk (/proc, /sys)";
}

// True for a pipe(2). Only somebody who holds an end of it can have passed it on, and opening it
// waits for nobody.
static bool is_pipe_without_name(int fd, const struct stat *status)
{
	struct statfs system;

	return S_ISFIFO(status->st_mode) && fstatfs(fd, &system) == 0 &&
	       system.f_type == PIPEFS_MAGIC;
}

// Opens the pipe without O_NONBLOCK, which would make it seem empty while its writer is busy.
static int open_pipe(int path_fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

// True for /dev/null: the one device that has an end, and useful as an empty profile to compare
// with.
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

// Reads until the buffer, which is made larger if it is full, is full again or the file ends: so
// each byte of a long line is moved and looked at a few times at most.
static struct error *fill(struct input_file *file)
{
	ssize_t n;

	if (file->size == file->capacity)
		file->bytes =
		    memory_grow(file->bytes, &file->capacity, file->size + PIECE_BYTES, 1);
	do {
		n = read(file->fd, file->bytes + file->size, file->capacity - file->size);
		file->size += n > 0 ? n : 0;
		input_limit_add(n > 0 ? (size_t)n : 0);
	} while ((n > 0 && file->size < file->capacity) || (n < 0 && errno == EINTR));
	file->ended = n == 0;
	return n < 0 ? refuse(file->path, strerror(errno)) : NULL;
}

struct error *input_file_open(const char *path, struct input_file *ret)
{
	*ret = (struct input_file){.path = path, .fd = -1};
	struct error *error =
	    is_stdin(path) ? open_stdin(path, &ret->fd) : open_path(path, &ret->fd);

	if (!error)
		error = fill(ret);
	if (error)
		input_file_close(ret);
	return error;
}

void input_file_close(struct input_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->bytes);
	*file = (struct input_file){.fd = -1};
}

struct error *input_file_read_rest(struct input_file *file)
{
	struct error *error = NULL;

	while (!error && !file->ended)
		error = fill(file);
	return error;
}

struct error *input_file_lines(void *context, const char **ret, size_t *ret_size)
{
	struct input_file *file = context;
	const uint8_t *newline;

	file->size -= file->n_given;
	memmove(file->bytes, file->bytes + file->n_given, file->size);
	file->n_given = 0;
	while (!(newline = memrchr(file->bytes, '\n', file->size)) && !file->ended) {
		struct error *error = fill(file);
		if (error)
			return error;
	}
	file->n_given = newline ? (size_t)(newline + 1 - file->bytes) : file->size;
	*ret = (const char *)file->bytes;
	*ret_size = file->n_given;
	return NULL;
}

struct error *input_file_read(const char *path, uint8_t **ret, size_t *ret_size)
{
	struct input_file file;
	struct error *error = input_file_open(path, &file);

	if (error)
		return error;
	error = input_file_read_rest(&file);
	if (!error) {
		*ret = take_pointer(file.bytes);
		*ret_size = file.size;
	}
	input_file_close(&file);
	return error;
}

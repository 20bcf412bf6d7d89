// SPDX-License-Identifier: MIT
#include "push_headers.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "memory.h"

enum { MAX_BYTES = 64 << 10, MAX_LINES = 32, MIN_SECRET = 4 };

static struct error *refuse(const char *path, const char *why)
{
	return error_create(EXIT_STATUS_USAGE, "--push-header-file: %s: %s", path, why);
}

static struct error *open_private(const char *path, int *ret)
{
	struct stat status;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, &status) != 0)
		return refuse(path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return refuse(path, "it is not a regular file");
	if (status.st_mode & (S_IRWXG | S_IRWXO))
		return refuse(path, "others than its owner may read or write it: chmod 600 it");
	if (status.st_size > MAX_BYTES)
		return refuse(path, "it is larger than 64 KiB");
	*ret = fd;
	fd = -1;
	return NULL;
}

static bool is_header(const char *line)
{
	const size_t name = strcspn(line, ":");

	if (name == 0 || line[name] != ':')
		return false;
	for (size_t i = 0; i < name; i++)
		if (!isascii(line[i]) ||
		    (!isalnum((unsigned char)line[i]) && !strchr("-_", line[i])))
			return false;
	for (const char *c = line + name; *c; c++)
		if (iscntrl((unsigned char)*c) && *c != '\t')
			return false;
	return true;
}

static struct error *take_lines(const char *path, char *text, struct push_headers *headers)
{
	size_t n = 0;
	char *rest = NULL;

	headers->lines = memory_alloc_zeroed(MAX_LINES + 1, sizeof(*headers->lines));
	for (char *line = strtok_r(text, "\r\n", &rest); line;
	     line = strtok_r(NULL, "\r\n", &rest)) {
		if (line[0] == '#')
			continue;
		if (n == MAX_LINES || !is_header(line))
			return refuse(path, "it must have at most 32 lines, each such as "
			                    "'Authorization: Bearer TOKEN'");
		headers->lines[n++] = memory_strdup(line);
	}
	return NULL;
}

struct error *push_headers_read(const char *path, struct push_headers *ret)
{
	char text[MAX_BYTES + 1];
	size_t size = 0;
	ssize_t n = 0;
	_cleanup_close_ int fd = -1;
	struct error *error = open_private(path, &fd);

	*ret = (struct push_headers){0};
	if (error)
		return error;
	while (size < MAX_BYTES && (n = read(fd, text + size, MAX_BYTES - size)) > 0)
		size += (size_t)n;
	text[size] = '\0';
	error = n < 0 ? refuse(path, strerror(errno)) : take_lines(path, text, ret);
	explicit_bzero(text, sizeof(text));
	if (error)
		push_headers_deinit(ret);
	return error;
}

static void hide(char *text, const char *secret, size_t length)
{
	for (char *at = text; *at; at++) {
		size_t n = 0;
		while (n < length && at[n] == secret[n])
			n++;
		if (n == length || (n >= MIN_SECRET && at[n] == '\0'))
			memset(at, '*', n);
	}
}

// Their words, so that a scheme such as Bearer in front of a token does not matter.
void push_headers_hide(const struct push_headers *headers, char *text)
{
	for (char **line = headers->lines; line && *line; line++)
		for (const char *at = strchr(*line, ':') + 1; *at;) {
			at += strspn(at, " \t");
			const size_t length = strcspn(at, " \t");
			if (length >= MIN_SECRET)
				hide(text, at, length);
			at += length;
		}
}

void push_headers_deinit(struct push_headers *headers)
{
	for (char **line = headers->lines; line && *line; line++) {
		explicit_bzero(*line, strlen(*line));
		free(*line);
	}
	free(headers->lines);
	*headers = (struct push_headers){0};
}

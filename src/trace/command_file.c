// SPDX-License-Identifier: MIT
#include "command_file.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"
#include "text.h"

enum { FIRST_BYTES = 128, MAX_HEADERS = 256, MAX_PATH_BYTES = 4096 };

// O_NONBLOCK: opening a FIFO does not wait for its other end.
static int open_file(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat file;

	if (fd < 0 || fstat(fd, &file) != 0 || !S_ISREG(file.st_mode))
		return -1;
	const int opened = fd;
	fd = -1;
	return opened;
}

static bool may_execute(const char *path)
{
	struct stat file;

	return stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, X_OK) == 0;
}

char *command_file_find(const char *command)
{
	const char *directories = getenv("PATH");

	if (strchr(command, '/'))
		return may_execute(command) ? memory_strdup(command) : NULL;
	for (const char *at = directories ? directories : "/bin:/usr/bin";; at++) {
		const int length = (int)strcspn(at, ":");
		char *path = memory_printf("%.*s%s%s", length, at, length ? "/" : "", command);
		// execvp(3) goes on to the next directory if it may not execute the file.
		if (may_execute(path))
			return path;
		free(path);
		at += length;
		if (*at == '\0')
			return NULL;
	}
}

bool command_file_is_binary(const char *path)
{
	_cleanup_close_ int fd = open_file(path);
	char bytes[FIRST_BYTES];
	const ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

	for (ssize_t i = 0; i < n && bytes[i] != '\n'; i++)
		if (bytes[i] == '\0')
			return true;
	return false;
}

// Returns the loader that the program names (PT_INTERP); NULL: it names none.
static char *read_loader(int fd, Elf *elf)
{
	size_t n = 0;
	GElf_Phdr header;

	if (elf_getphdrnum(elf, &n) != 0)
		return NULL;
	for (size_t i = 0; i < n && i < MAX_HEADERS; i++) {
		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_INTERP ||
		    header.p_filesz == 0 || header.p_filesz > MAX_PATH_BYTES)
			continue;
		char *path = memory_alloc_zeroed(header.p_filesz + 1, 1);
		if (pread(fd, path, header.p_filesz, (off_t)header.p_offset) > 0)
			return path;
		free(path);
	}
	return NULL;
}

static char *find_loader(const char *path)
{
	_cleanup_close_ int fd = open_file(path);

	if (fd < 0 || elf_version(EV_CURRENT) == EV_NONE)
		return NULL;
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	char *loader = read_loader(fd, elf);
	elf_end(elf);
	return loader;
}

static bool is_missing(const char *path)
{
	return access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

char *command_file_lacks(const char *path)
{
	struct script script;
	_cleanup_free_ char *loader = NULL;

	for (int i = 0; i < SCRIPT_MAX_DEPTH && script_read(path, &script); i++) {
		const size_t length = strlen(script.interpreter);
		_cleanup_free_ char *name = text_clean(script.interpreter, length, TEXT_UNLIMITED);
		if (is_missing(script.interpreter))
			return memory_printf(
			    "its interpreter %s is missing%s", name,
			    script.interpreter[length - 1] == '\r'
			        ? ", for its first line ends in a carriage return: convert it to "
			          "Unix line ends"
			        : "");
		path = script.interpreter;
	}
	loader = find_loader(path);
	if (!loader || !is_missing(loader))
		return NULL;
	_cleanup_free_ char *name = text_clean(loader, strlen(loader), TEXT_UNLIMITED);
	return memory_printf("its loader %s is missing: it was built for another system", name);
}

static bool read_line(const char *path, char line[SCRIPT_LINE_BYTES + 1])
{
	// O_NONBLOCK: opening a FIFO does not wait for its other end.
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat file;

	if (fd < 0 || fstat(fd, &file) != 0 || !S_ISREG(file.st_mode))
		return false;
	const ssize_t n = read(fd, line, SCRIPT_LINE_BYTES);
	if (n < 2 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return true;
}

bool script_read(const char *path, struct script *ret)
{
	static const char blanks[] = " \t";
	char line[SCRIPT_LINE_BYTES + 1];

	if (!read_line(path, line))
		return false;
	const char *name = line + 2 + strspn(line + 2, blanks);
	const size_t length = strcspn(name, blanks);
	const char *argument = name + length + strspn(name + length, blanks);
	if (length == 0)
		return false;
	memcpy(ret->interpreter, name, length);
	ret->interpreter[length] = '\0';
	ret->has_argument = *argument != '\0';
	return true;
}

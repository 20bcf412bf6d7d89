// SPDX-License-Identifier: MIT
#include "script.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"

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

// SPDX-License-Identifier: MIT
#include "descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include "error.h"

struct error *descriptors_keep_ready_fd(int fd)
{
	if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
		return NULL;
	return error_create(
	    EXIT_STATUS_USAGE,
	    "--ready-fd: descriptor %d is not open: open it, as the shell does with "
	    "%d>FILE",
	    fd, fd);
}

void descriptors_occupy_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		const int mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", mode | O_CLOEXEC) != fd)
			return;
	}
}

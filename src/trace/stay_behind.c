// SPDX-License-Identifier: MIT
#include "stay_behind.h"

#include <fcntl.h>
#include <unistd.h>

void stay_behind(void)
{
	const int nothing = open("/dev/null", O_RDWR);

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		dup2(nothing, fd);
	closefrom(STDERR_FILENO + 1);
	if (chdir("/") != 0)
		return; // failed: then it keeps a directory from being unmounted
}

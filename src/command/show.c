// SPDX-License-Identifier: MIT
#include "show.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "memory.h"

int show_error(struct error *error)
{
	const int status = error_status(error);
	_cleanup_free_ char *line = memory_printf("profiler: %s\n", error_message(error));

	fputs(line, stderr); // fprintf to stderr has a buffer of 8 KiB on a stack that may be small
	error_destroy(error);
	return status;
}

int show_text(const char *text)
{
	if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
		return EXIT_STATUS_OK;
	return show_error(
	    error_create(EXIT_STATUS_OUTPUT, "stdout cannot be written: %s", strerror(errno)));
}

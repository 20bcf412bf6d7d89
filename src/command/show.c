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
	// As other tools do, which SIGPIPE kills.
	if (status == EXIT_STATUS_UNREAD) {
		error_destroy(error);
		return status;
	}
	_cleanup_free_ char *line = memory_printf("profiler: %s\n", error_message(error));

	fputs(line, stderr); // fprintf to stderr has a buffer of 8 KiB on a stack that may be small
	error_destroy(error);
	return status;
}

struct error *show_no_reader(void)
{
	return error_create(errno == EPIPE ? EXIT_STATUS_UNREAD : EXIT_STATUS_OUTPUT,
	                    "stdout cannot be written: %s", strerror(errno));
}

struct error *show_text(const char *text)
{
	return fputs(text, stdout) >= 0 && fflush(stdout) == 0 ? NULL : show_no_reader();
}

struct error *show_line(const char *text)
{
	return puts(text) >= 0 && fflush(stdout) == 0 ? NULL : show_no_reader();
}

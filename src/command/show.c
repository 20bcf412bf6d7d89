// SPDX-License-Identifier: MIT
#include "show.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "error.h"

int show_error(struct error *error)
{
	const int status = error_status(error);

	fprintf(stderr, "profiler: %s\n", error_message(error));
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

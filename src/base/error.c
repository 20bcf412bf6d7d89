// SPDX-License-Identifier: MIT
#include "error.h"

#include <stdio.h>
#include <stdlib.h>

#include "memory.h"

struct error {
	enum exit_status status;
	char *message;
};

struct error *error_create(enum exit_status status, const char *format, ...)
{
	struct error *error = memory_alloc(sizeof(*error));
	va_list args;

	error->status = status;
	va_start(args, format);
	error->message = memory_vprintf(format, args);
	va_end(args);
	return error;
}

void error_destroy(struct error *error)
{
	if (!error)
		return;
	free(error->message);
	free(error);
}

const char *error_message(const struct error *error)
{
	return error->message;
}

enum exit_status error_status(const struct error *error)
{
	return error->status;
}

// SPDX-License-Identifier: MIT
#include "memory.h"

#include <string.h>

static void (*on_exhaustion)(void);

static void *check(void *pointer)
{
	if (pointer)
		return pointer;
	if (on_exhaustion)
		on_exhaustion();
	// Nothing that allocates, such as stdio, may run here.
	static const char message[] = "profiler: out of memory\n";
	ssize_t written = write(STDERR_FILENO, message, sizeof(message) - 1);
	(void)written;
	_exit(1);
}

void memory_on_exhaustion(void (*function)(void))
{
	on_exhaustion = function;
}

void *memory_alloc(size_t size)
{
	return check(malloc(size ? size : 1));
}

void *memory_alloc_zeroed(size_t count, size_t size)
{
	return check(calloc(count ? count : 1, size));
}

char *memory_strdup(const char *string)
{
	return check(strdup(string));
}

char *memory_strndup(const char *string, size_t length)
{
	return check(strndup(string, length));
}

char *memory_vprintf(const char *format, va_list args)
{
	char *string = NULL;

	if (vasprintf(&string, format, args) < 0)
		string = NULL;
	return check(string);
}

char *memory_printf(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	char *string = memory_vprintf(format, args);
	va_end(args);
	return string;
}

void *memory_grow(void *array, size_t *capacity, size_t need, size_t size)
{
	if (need <= *capacity)
		return array;
	size_t larger = *capacity ? *capacity * 2 : 16;
	if (larger < need)
		larger = need;
	array = check(reallocarray(array, larger, size));
	*capacity = larger;
	return array;
}

// SPDX-License-Identifier: MIT
#include "java_name.h"

#include <ctype.h>
#include <string.h>

#include "memory.h"

// Returns how much of the class's name comes before the address that a hidden class's ends with.
static size_t shown_length(const char *class)
{
	const char *plus = strstr(class, "+0x");

	return plus ? (size_t)(plus - class) : strlen(class);
}

// Returns where the number of a lambda's class begins ("Main$$Lambda$14"): its classes are numbered
// in the order in which they are first used.
static size_t without_number(const char *class, size_t length)
{
	static const char lambda[] = "$$Lambda$";
	const size_t size = sizeof(lambda) - 1;
	size_t end = length;

	while (end > 0 && isdigit((unsigned char)class[end - 1]))
		end--;
	return end >= size && end < length && strncmp(class + end - size, lambda, size) == 0
	           ? end - 1
	           : length;
}

char *java_name_method(const char *class, const char *method)
{
	const size_t length = without_number(class, shown_length(class));
	char *name = memory_printf("%.*s.%s", (int)length, class, method);

	for (size_t i = 0; i < length; i++)
		if (name[i] == '/')
			name[i] = '.';
	return name;
}

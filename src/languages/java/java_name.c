// SPDX-License-Identifier: MIT
#include "java_name.h"

#include <ctype.h>
#include <string.h>

#include "memory.h"

// Returns the length of the class's name without the address at the end of a hidden class's.
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

char *java_name_class(const char *class)
{
	const size_t length = without_number(class, shown_length(class));
	char *name = memory_strndup(class, length);

	for (size_t i = 0; i < length; i++)
		if (name[i] == '/')
			name[i] = '.';
	return name;
}

char *java_name_method(const char *class, const char *method)
{
	_cleanup_free_ char *name = java_name_class(class);

	return memory_printf("%s.%s", name, method);
}

char *java_name_lock(const char *class)
{
	static const char packages[][32] = {"java.util.concurrent.locks.", "java.util.concurrent."};
	static const char outer[] = "AbstractQueuedSynchronizer$";
	static const char inner[][16] = {"$NonfairSync", "$FairSync", "$Sync"};
	const char *begin = class;
	size_t length;

	for (size_t i = 0; i < array_size(packages) && begin == class; i++)
		if (strncmp(class, packages[i], strlen(packages[i])) == 0)
			begin += strlen(packages[i]);
	if (begin == class)
		return memory_strdup(class);
	if (strncmp(begin, outer, strlen(outer)) == 0)
		begin += strlen(outer);
	length = strlen(begin);
	for (size_t i = 0; i < array_size(inner); i++) {
		const size_t size = strlen(inner[i]);
		if (length > size && strcmp(begin + length - size, inner[i]) == 0)
			return memory_strndup(begin, length - size);
	}
	return memory_strdup(begin);
}

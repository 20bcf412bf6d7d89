// SPDX-License-Identifier: MIT
#include "input_limit.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "error.h"
#include "memory.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SANITIZED 1 // its own memory is larger than any limit
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

#define FREE_BYTES (256u << 20)

enum { BYTES_FOR_ONE = 2 };

static const char *input_name; // NULL: there is no limit
static struct rlimit before;
static rlim_t limit;

// Nothing that allocates may run here.
static void on_exhaustion(void)
{
	static const char start[] = "profiler: ",
	                  end[] = " is too large: it needs more than 256 MB and "
	                          "twice its size of memory\n";
	struct iovec parts[] = {
	    {(char *)start, sizeof(start) - 1},
	    {(char *)input_name, strlen(input_name)},
	    {(char *)end, sizeof(end) - 1},
	};
	ssize_t written = writev(STDERR_FILENO, parts, array_size(parts));

	(void)written;
	_exit(EXIT_STATUS_TARGET);
}

// What counts for RLIMIT_DATA (may_expand_vm, mm/mmap.c).
static rlim_t data_bytes(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	if (file && fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
		pages = 0;
	// cppcheck-suppress resourceLeak ; closed by _cleanup_fclose_
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void set_limit(void)
{
	struct rlimit now = before;

	if (limit < now.rlim_cur)
		now.rlim_cur = limit;
	setrlimit(RLIMIT_DATA, &now);
}

void input_limit_begin(const char *name)
{
	if (IS_SANITIZED)
		return;
	if (!input_name) {
		getrlimit(RLIMIT_DATA, &before);
		limit = data_bytes() + FREE_BYTES;
		memory_on_exhaustion(on_exhaustion);
	}
	input_name = name;
	set_limit();
}

void input_limit_add(size_t bytes)
{
	if (!input_name)
		return;
	limit += BYTES_FOR_ONE * (rlim_t)bytes;
	set_limit();
}

void input_limit_end(void)
{
	if (!input_name)
		return;
	setrlimit(RLIMIT_DATA, &before);
	memory_on_exhaustion(NULL);
	input_name = NULL;
}

// SPDX-License-Identifier: MIT
#include "stack_limit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "error.h"

enum { NEEDED_BYTES = 1 << 20 }; // debug information nests deeply, and so do names of templates

static struct rlimit original;
static bool raised;

static rlim_t at_least_needed(rlim_t bytes)
{
	return bytes < NEEDED_BYTES ? NEEDED_BYTES : bytes; // RLIM_INFINITY is the largest
}

struct error *stack_limit_raise(void)
{
	if (getrlimit(RLIMIT_STACK, &original) != 0 || original.rlim_cur >= NEEDED_BYTES)
		return NULL;
	const struct rlimit limit = {
	    .rlim_cur = NEEDED_BYTES,
	    .rlim_max = at_least_needed(original.rlim_max),
	};
	raised = setrlimit(RLIMIT_STACK, &limit) == 0;
	if (raised)
		return NULL;
	return error_create(EXIT_STATUS_TARGET,
	                    "the stack may be no larger than %ju KiB here, and %d are needed: "
	                    "raise the limit (ulimit -s)",
	                    (uintmax_t)original.rlim_cur >> 10, NEEDED_BYTES >> 10);
}

void stack_limit_restore(void)
{
	if (raised)
		setrlimit(RLIMIT_STACK, &original);
}

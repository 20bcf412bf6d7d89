// SPDX-License-Identifier: MIT
// call_counts: counts the system calls that stops have cut, and what was done for them
// (syscall_mend.h).
#pragma once

#include <stdint.h>

struct call_counts {
	uint64_t again; // the kernel entered them again, without another stop
	uint64_t rests; // continued, or executed again without being disturbed
	uint64_t parts; // the parts in which these were executed; each takes two stops
	uint64_t left;  // could not be mended
	int last_left;  // the number of the last of these; -1: not known
};

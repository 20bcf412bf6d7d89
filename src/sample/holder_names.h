// SPDX-License-Identifier: MIT
// holder_names: the names of the threads that hold what others wait for. Few threads hold much, so
// that a name is kept for a moment rather than read for each that waits.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proc.h"

enum { N_HOLDER_NAMES = 16 };

struct holder_names {
	struct {
		int tid; // 0: none
		int64_t due_ns;
		char name[PROC_NAME_SIZE];
	} items[N_HOLDER_NAMES];
};

// Gives the name of a thread of that process, of which all are, as it was a tenth of a second ago
// at most. Returns false if it cannot be read.
bool holder_names_read(struct holder_names *names, int pid, int tid, char ret[PROC_NAME_SIZE]);

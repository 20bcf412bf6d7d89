// SPDX-License-Identifier: MIT
// wait_groups: finds tasks that wait for the same thing: a lock, a channel.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"

struct wait_group {
	const char *object; // "mutex 0xc000012345"; owned by the profile
	size_t count;       // of tasks
	int64_t oldest_ns;  // how long one of them has waited, at least; -1: not known
	bool is_lock;
};

// Finds groups of two tasks or more, from the profile's samples: locks first, then those with
// more tasks. NULL if there are none; else the caller frees it.
struct wait_group *wait_groups_find(const struct profile *profile, size_t *ret_count);

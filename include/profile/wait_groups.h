// SPDX-License-Identifier: MIT
// wait_groups: which goroutines wait for the same thing: a lock, a channel.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"

struct wait_group {
	const char *object; // "mutex 0xc000012345"; owned by the profile
	size_t count;       // of goroutines
	int64_t oldest_ns;  // that one of them has waited for, or longer; -1: not known
	bool is_lock;
};

// Those of two goroutines or more, by the profile's samples: locks first, and what more wait for.
// NULL: there are none; else the caller frees it.
struct wait_group *wait_groups_find(const struct profile *profile, size_t *ret_count);

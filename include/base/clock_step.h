// SPDX-License-Identifier: MIT
// clock_step: notices that the time of day was set: by NTP, by hand, or after a suspend, in which
// CLOCK_MONOTONIC stands still.
#pragma once

#include <stdint.h>

// Returns CLOCK_REALTIME - CLOCK_MONOTONIC. It changes only when the time of day is set.
int64_t clock_offset_ns(void);

// Returns by how much the time of day was set since clock_offset_ns() returned `since_ns`. 0 for
// less than a tenth of a second: the two clocks are not read at the same instant.
int64_t clock_step_ns(int64_t since_ns);

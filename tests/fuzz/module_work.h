// SPDX-License-Identifier: MIT
// All that the profiler does with a module, on one of any bytes.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Makes a module of the file, asks for the rules and names of the addresses, and writes profiles.
// Faults within libdw are endured, as the profiler does; ours are findings.
void module_work(const void *file, size_t size, const uint64_t *addresses, size_t n_addresses);

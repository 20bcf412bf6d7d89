// SPDX-License-Identifier: MIT
// java_unloads: finds the counter of classes that HotSpot has unloaded, among its performance
// counters (perfMemory.hpp: PerfDataPrologue, PerfDataEntry; -XX:+UsePerfData, the default).
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct java_layout;
struct java_memory;

// Finds the address of java.cls.unloadedClasses. False, with *ret 0, if there is no such counter,
// or not yet.
bool java_unloads_find(const struct java_memory *memory, const struct java_layout *layout,
                       uint64_t *ret);

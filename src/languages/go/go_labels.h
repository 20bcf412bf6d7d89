// SPDX-License-Identifier: MIT
// go_labels: reads the labels that a program has given a goroutine (runtime/pprof's Do,
// SetGoroutineLabels) from its struct g: a list of keys and values since Go 1.24, before that a map
// (runtime/map.go).
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct go_memory;
struct go_program;

// Appends the labels at the address (0: none) to *text (labels.h), sorted by key. Prefixes a key
// with "go." if the profiler's own labels have the same one. False if they cannot all be read, or
// are more than a profile shows; it appends nothing then.
bool go_labels_read(const struct go_program *program, const struct go_memory *memory,
                    uint64_t address, char **text);

// SPDX-License-Identifier: MIT
// go_labels: the labels that a program has given a goroutine (runtime/pprof's Do,
// SetGoroutineLabels), as struct g has them: a list of keys and values since Go 1.24, before that a
// map (runtime/map.go).
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct go_memory;
struct go_program;

// Appends those at the address to *text (labels.h), by their keys; one with a name that the
// profiler's own labels have is prefixed with "go.". At address 0 there are none. False: they
// cannot all be read, or are more than a profile shows; nothing is appended then.
bool go_labels_read(const struct go_program *program, const struct go_memory *memory,
                    uint64_t address, char **text);

// SPDX-License-Identifier: MIT
// go_guess: checks that a Go program of an unknown version keeps its goroutines as the newest known
// version does.
//
// Most releases of Go leave the structures as they are. So the newest known offsets are tried on a
// newer version, and believed only if all that they lead to fits together: stacks that hold their
// stack pointers, addresses of code that are in functions, states and reasons in range, structures
// that point back at each other.
#pragma once

#include <stdbool.h>

struct go_memory;
struct go_offsets;
struct go_program;

// Drops from the offsets what go_guess_fits cannot check.
void go_guess_reduce(struct go_offsets *offsets);

// True if the first goroutines of the program's list fit its offsets and its reasons, and one of
// them is parked and tells who created it: the runtime has such ones of its own. False also if they
// cannot be read now.
bool go_guess_fits(const struct go_program *program, const struct go_memory *memory);

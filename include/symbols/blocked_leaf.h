// SPDX-License-Identifier: MIT
// blocked_leaf: the function that a blocked thread's stack ends in, as its author calls it.
//
// From glibc 2.41 on, calls that may block reach the kernel by way of functions that the C library
// keeps to itself (__syscall_cancel_arch; musl has others). Without its debug file they have no
// names, and with it all blocked threads end in the same one. The call itself says more: read,
// poll.
#pragma once

#include <stdint.h>

struct modules;
struct profile;
struct sample;
struct symbols;

// Returns how many frames at the leaf of a blocked sample's stack are such functions, below one
// that has a name; without one, the outermost of them is not counted.
uint32_t blocked_leaf_inner_frames(const struct profile *profile, const struct modules *modules,
                                   const struct symbols *symbols, const struct sample *sample);

// Takes these frames off the stacks of the profile, in which nothing is counted any more.
void blocked_leaf_shorten(struct profile *profile, const struct modules *modules,
                          const struct symbols *symbols);

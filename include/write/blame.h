// SPDX-License-Identifier: MIT
// blame: follows waits to who makes them last (--blame).
//
// A thread that waits for a lock, for the end of another thread or of a process, or for the process
// at the other end of a pipe or connection is shown doing what the other does at that instant: its
// own stack, a frame "--", and the other's stack. If that waits too, it goes on from there. Of
// processes with several threads it is not known which of them has the other end: these are not
// followed.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct modules;
struct profile;
struct sample;
struct symbols;
struct timeline;

enum { BLAME_MAX_LINKS = 16 }; // stacks below one that waits

// Time for which threads waited.
struct blame {
	int64_t blocked_ns;  // in all
	int64_t followed_ns; // of that: to another's stack
	int64_t unseen_ns;   // of that: for a thread that was not sampled then
	int64_t circle_ns;   // of that: for each other, in a circle
};

// Follows all waits in the timeline, which has the spans of all threads. Its spans have samples of
// the new stacks then, which are added to the profile (struct stack.n_blamed), with what is new in
// its modules and symbols.
void blame_follow(struct timeline *timeline, struct profile *profile, struct modules *modules,
                  struct symbols *symbols, struct blame *ret);

// Returns what the timeline's spans add up to, by sample: *ret_count items that are not empty. The
// caller frees.
struct sample *blame_sum(const struct timeline *timeline, const struct profile *profile,
                         size_t *ret_count);

struct location;

// True if the location is the frame between two stacks; that of a circle.
bool blame_is_separator(const struct modules *modules, const struct location *location);
bool blame_is_circle(const struct modules *modules, const struct location *location);

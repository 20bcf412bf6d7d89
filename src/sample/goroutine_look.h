// SPDX-License-Identifier: MIT
// goroutine_look: looks at all goroutines of a program, and counts those that no thread runs.
//
// A look may take several ticks, each for a part of its period, so that threads are sampled in time
// however many goroutines there are. How often one begins depends on what the last one has cost: a
// goroutine that is parked and has not moved was parked all the while, so its time is right even if
// it was seldom looked at.
#pragma once

#include <stdbool.h>

struct ticker;

// Goes on with the look, or begins one if it is time to; looks also at goroutines that were run and
// are not any more. False if there was no look to go on with.
bool goroutine_look_at_some(struct ticker *ticker);

// Call it at the end. If not all stacks have been read once, reads those that were not, however
// long that takes; looks again at goroutines that were run and are not any more.
void goroutine_look_at_last(struct ticker *ticker);

// SPDX-License-Identifier: MIT
// held_tasks: finds waits on a condition in the middle of a task: for a place in a pool that the
// program has built itself. A wait for the next task looks the same, but for where it is: in the
// function that the thread is always in. In the middle of a task, other threads go on with the same
// function meanwhile, and that is called by one that does something else as well. Or the name of
// the function that waits says what for.
#pragma once

#include <stdint.h>

struct explanation;

// `rules`: of each sample. Makes RULE_POOL of RULE_IDLE where a task waits.
void held_tasks_find(struct explanation *explanation, uint8_t *rules);

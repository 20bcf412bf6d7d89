// SPDX-License-Identifier: MIT
// held_tasks: finds waits on a condition in the middle of a task: for a place in a pool, or in a
// queue, that the program has built itself. A wait for the next task looks the same, but it is in
// the thread's first function, and how many others have a task meanwhile changes. Of those that
// wait for a place, always as many others have one, by turns. Or the name of the function that
// waits says what for.
#pragma once

#include <stdint.h>

struct explanation;

// `rules`: of each sample. Makes RULE_POOL or RULE_SEND of RULE_IDLE where a task waits.
void held_tasks_find(struct explanation *explanation, uint8_t *rules);

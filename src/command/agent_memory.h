// SPDX-License-Identifier: MIT
// agent_memory: the memory of processes that the agent has started, and their end where it is too
// much.
#pragma once

#include <stdint.h>

// Returns what the process and its descendants have of the machine's memory, in bytes: the sum of
// PSS, in which what several share counts once. What is not told counts as 0.
uint64_t agent_memory_of(int pid);

// Kills (SIGKILL) the descendants of the process, which is a child of ours, but not itself: the
// supervisor of a sampler lets go of whoever was held (supervise.h).
void agent_memory_free(int pid);

// SPDX-License-Identifier: MIT
// agent_memory: the memory of processes that the agent has started.
#pragma once

#include <stdint.h>

// Returns what the process and its descendants have of the machine's memory, in bytes: the sum of
// PSS, in which what several share counts once. What is not told counts as 0.
uint64_t agent_memory_of(int pid);

// Makes this process, which is to be a sampler, fail when it takes more than all samplers together
// may, before the kernel ends somebody in its place. What it has already is not counted.
void agent_memory_limit(uint64_t bytes);

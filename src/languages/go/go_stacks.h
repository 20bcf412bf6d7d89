// SPDX-License-Identifier: MIT
// go_stacks: what the sampler asks of Go's stacks, which are unwound as any others, and tells of
// them.
#pragma once

#include <stdint.h>

struct address_space;
struct go_thread;
struct snapshot;

// Returns what the copy holds of the thread that it was made of, or nothing (m is 0). Owned by the
// copy.
const struct go_thread *go_stacks_thread(const struct snapshot *snapshot);

// Makes that what the copy holds; borrowed.
void go_stacks_set_thread(struct snapshot *snapshot, const struct go_thread *thread);

// Tells where struct g has these fields in the process's program (0: not known), once its stacks
// have shown that it is one of Go's.
void go_stacks_set_fields(const struct address_space *space, uint16_t goid, uint16_t status,
                          uint16_t labels);

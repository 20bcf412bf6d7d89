// SPDX-License-Identifier: MIT
// dump_inferred: who perhaps holds a lock in which nobody's id stands, as those of Rust and of
// C++'s static variables.
//
// Who holds such a lock often has its address on the stack, and so have those that wait for it. If
// exactly one other thread has, that is a hint: it is said as "perhaps", and proves no deadlock.
#pragma once

struct dump;
struct dump_locks;

// Sets the holders of waits that have none so far; reads stacks of threads that sleep.
void dump_infer_holders(struct dump_locks *locks, const struct dump *dump);

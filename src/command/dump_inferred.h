// SPDX-License-Identifier: MIT
// dump_inferred: finds who perhaps holds a lock that does not name its holder, such as Rust's, and
// those of C++'s static variables.
//
// A thread that holds such a lock often has the lock's address on its stack, as those that wait for
// it have. If exactly one thread has it that does not wait for it, that is a hint: the dump says
// "perhaps", and it proves no deadlock.
#pragma once

struct dump;
struct dump_locks;

// Sets the holders of waits without one, by reading the stacks of threads that sleep.
void dump_infer_holders(struct dump_locks *locks, const struct dump *dump);

// SPDX-License-Identifier: MIT
// dump_goroutines: who has the other ends of what goroutines wait for, in a dump.
#pragma once

struct dump;

// Sets the holders of goroutines that wait for a pipe or socket, where they are known.
void dump_goroutines_find_peers(struct dump *dump);

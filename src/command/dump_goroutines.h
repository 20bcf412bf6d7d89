// SPDX-License-Identifier: MIT
// dump_goroutines: finds who has the other ends of pipes and sockets that goroutines wait for.
#pragma once

struct dump;

// Sets `holder` of the dump's goroutines that wait for a pipe or socket, if the other end is known.
void dump_goroutines_find_peers(struct dump *dump);

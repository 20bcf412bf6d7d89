// SPDX-License-Identifier: MIT
// wait_peers: finds which sampled process has the other end of the pipes and sockets that a
// process's threads wait for, and adds it to what the waits mean (wait_peer).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

struct wait_peers {
	uint32_t *waits; // in the profile, whose other end is not known yet
	size_t n_waits, waits_capacity;
	bool *noted; // for each wait in the profile: it was among them
	size_t n_noted, noted_capacity;
	int64_t cost_ns, next_ns;
};

void wait_peers_deinit(struct wait_peers *peers);

// Notes a wait, if it is for a pipe or a socket.
void wait_peers_note(struct wait_peers *peers, const struct profile *profile, uint32_t wait);

// Looks for the other ends, if it is time to, among the descriptors of all processes in the
// profile. The waits are those of process `pid` with a thread `tid`. `last`: no other call will
// come.
void wait_peers_find(struct wait_peers *peers, struct profile *profile, int pid, int tid,
                     bool last);

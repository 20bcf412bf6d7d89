// SPDX-License-Identifier: MIT
// served_ports: which TCP ports a process serves, told by its waits: one on which it listens, or
// that has several connections. Whoever waits on such a connection waits for a request.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { N_PORTS = 65536 };

struct profile;
struct wait;

struct served_ports {
	bool is_served[N_PORTS];
	uint16_t remote[N_PORTS]; // of the first connection; 0: there is none
};

// Returns the ports of the profile's waits, for the caller to free.
struct served_ports *served_ports_find(const struct profile *profile);

// True if the wait is for a TCP connection that the process has accepted.
bool served_ports_have(const struct served_ports *ports, const struct wait *wait);

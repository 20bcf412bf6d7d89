// SPDX-License-Identifier: MIT
#include "served_ports.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "profile.h"
#include "text.h"

// Returns the number behind the text's last colon; 0: there is none.
static uint16_t port_at_end(const char *text, size_t length)
{
	const char *colon = memrchr(text, ':', length);

	return colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
}

// Takes "tcp 10.0.0.1:80 -> 10.0.0.2:4711" apart. Returns the local port, 0 if it is of no TCP
// socket; the remote one is 0 for a socket that listens.
static uint16_t read_ports(const struct wait *wait, uint16_t *ret_remote)
{
	static const char tcp[] = "tcp ", arrow[] = " -> ";
	const char *text = wait->meaning ?: "";

	if (!text_begins_with(text, tcp))
		return 0;
	const char *peer = strstr(text, arrow);
	const char *end = peer ? strchrnul(peer + strlen(arrow), ',') : NULL;
	*ret_remote = peer ? port_at_end(peer, (size_t)(end - peer)) : 0;
	return port_at_end(text, peer ? (size_t)(peer - text) : strlen(text));
}

struct served_ports *served_ports_find(const struct profile *profile)
{
	struct served_ports *ports = memory_alloc_zeroed(1, sizeof(*ports));

	for (size_t i = 0; i < profile->n_waits; i++) {
		uint16_t remote;
		const uint16_t local = read_ports(&profile->waits[i], &remote);
		if (local == 0)
			continue;
		if (ports->remote[local] == 0)
			ports->remote[local] = remote;
		if (remote != ports->remote[local] || remote == 0)
			ports->is_served[local] = true;
	}
	return ports;
}

bool served_ports_have(const struct served_ports *ports, const struct wait *wait)
{
	uint16_t remote;
	const uint16_t local = read_ports(wait, &remote);

	return local != 0 && ports->is_served[local];
}

// SPDX-License-Identifier: MIT
// go_layout: where a Go program keeps what leads to its stacks (go_thread.h), as its own code
// shows.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Holds nothing that is known if both tls and tls_at are 0.
struct go_layout {
	int32_t tls;           // where a thread keeps g, from its thread pointer
	uint16_t curg;         // offset in struct m
	uint16_t goid, status; // in struct g; 0: not known
	uint16_t labels;       // likewise
	bool calls_back;       // C code may call Go functions
	uint64_t tls_at;       // instead of tls, if the dynamic linker sets that: an address in the
	                       // target; in a rule, in the module's file
};

static inline bool go_layout_is_known(const struct go_layout *layout)
{
	return layout->tls != 0 || layout->tls_at != 0;
}

// SPDX-License-Identifier: MIT
// listening: waits in which a stop of a target's thread is heard at once, and how long they took.
#pragma once

#include <poll.h>
#include <stdint.h>

// Does what poll(2) does. Any signal interrupts it.
int listening_poll(struct pollfd *fds, nfds_t n, int timeout_ms);

// Returns for how long this process has waited so, up to now, in nanoseconds; the handler of a
// signal that interrupts such a wait may call this.
int64_t listening_waited_ns(void);

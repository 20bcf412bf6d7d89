// SPDX-License-Identifier: MIT
// writing: writes bytes to where the user wants them, without waiting for ever for a reader that
// does not read.
//
// The worker's signals are blocked, and are read between ticks (events.h): one that comes while a
// write waits is only pending. So this looks for pending ones.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Writes all of it: 0, or an errno. Waits for a pipe's reader; but EINTR if nothing was read for a
// second and the user wants to end. Signals that are not blocked have their usual effect.
int writing_write(int fd, const void *bytes, size_t size);

// Says what is wrong, by the errno of writing_write.
const char *writing_failure(int number);

// Waits for a moment. True if the user wants to end: SIGINT, SIGTERM, SIGQUIT or SIGHUP is pending.
bool writing_pause(void);

// SPDX-License-Identifier: MIT
// descriptors: the file descriptors that the profiler was started with.
#pragma once

struct error;

// Fills each closed standard stream with a descriptor that can be neither read nor written: else
// the next file opened would take its number, and receive the profile or messages. A command that
// is started finds it closed, as before.
void descriptors_occupy_streams(void);

// Checks that the descriptor of --ready-fd is open, and keeps it from the command that is started.
// Negative: there is none.
struct error *descriptors_keep_ready_fd(int fd);

// SPDX-License-Identifier: MIT
// descriptors: those that the profiler was started with.
#pragma once

struct error;

// A standard stream that is closed would become some other file, to which the profile or a message
// would be written. Instead there stands what cannot be read or written; a command finds it closed.
void descriptors_occupy_streams(void);

// --ready-fd: it is for this process alone, not for the command, and must be open. Negative: none.
struct error *descriptors_keep_ready_fd(int fd);

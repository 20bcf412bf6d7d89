// SPDX-License-Identifier: MIT
// debug_frame: is there call frame information in .debug_frame, of a module or of its debug file?
#pragma once

#include <stdbool.h>

struct module;

// True if there is. It is found out without a look at other debug information: libdw unpacks all
// sections of a file at once (80 ms for libc's). To be called in guarded work (module_guard).
bool debug_frame_is_there(struct module *module);

// SPDX-License-Identifier: MIT
// debug_frame: tells whether a module or its debug file has call frame information in .debug_frame.
#pragma once

#include <stdbool.h>

struct module;

// True if it has. Does not look at other debug information, since libdw unpacks all sections of a
// file at once (80 ms for libc's). Call it in guarded work (module_guard).
bool debug_frame_is_there(struct module *module);

// SPDX-License-Identifier: MIT
// module_debug: reads a module's debug information: its own, or that of files that are found, or
// fetched, for it. What others use of it is in module.h.
#pragma once

#include <elfutils/libdwfl.h>

// libdwfl finds nothing by itself: neither a module's file nor its debug files. Each Dwfl_Module's
// user data is its struct module.
extern const Dwfl_Callbacks module_debug_callbacks;

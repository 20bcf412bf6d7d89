// SPDX-License-Identifier: MIT
// advice: what would name the functions that have no names.
#pragma once

#include <stdbool.h>

struct modules;
struct profile;
struct symbols;

// One line, owned by the caller, if most samples (of running threads, where some run) lack names,
// for their leaf or for most of their frames: of which file or compiled code, and where such names
// come from. NULL: no advice is needed, or none is known. `asked_servers`: with --debuginfod.
char *advice_on_names(const struct profile *profile, const struct modules *modules,
                      const struct symbols *symbols, bool asked_servers);

// SPDX-License-Identifier: MIT
// advice: tells how functions without names would get them.
#pragma once

#include <stdbool.h>

struct modules;
struct profile;
struct symbols;

// Returns a line, owned by the caller, if most samples (of running threads, if any run) have no
// name for their leaf or for most of their frames. It tells which file or compiled code lacks them,
// and where such names come from. NULL: no advice is needed, or none is known. `asked_servers`:
// --debuginfod was given.
char *advice_on_names(const struct profile *profile, const struct modules *modules,
                      const struct symbols *symbols, bool asked_servers);

// Returns a line if the process has goroutines that the profiler does not see; NULL: it has none.
const char *advice_on_goroutines(const struct modules *modules);

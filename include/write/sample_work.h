// SPDX-License-Identifier: MIT
// sample_work: tells whether a thread or task had work in a sample: by the kind of its wait
// (wait_kind_has_no_work), and for a task, such as a goroutine, by whose functions are on its
// stack.
//
// The library keeps a task for each open connection. It always waits for the other end, also when
// there is no request. The task that made a request waits for the library's task.
#pragma once

#include <stdbool.h>

#include "wait_kind.h"

struct modules;
struct profile;
struct sample;
struct symbols;

// Borrows its arguments.
struct sample_work *sample_work_create(const struct profile *profile, const struct modules *modules,
                                       const struct symbols *symbols);
void sample_work_destroy(struct sample_work *work);

// True if the thread had no work. `kind`: of the sample (sample_kind.h).
bool sample_has_no_work(struct sample_work *work, const struct sample *sample, enum wait_kind kind);

// SPDX-License-Identifier: MIT
// pprof_folded: a pprof profile, of any profiler, as folded stacks.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

// Returns true if the bytes are those of a pprof profile, compressed or plain, rather than text.
bool pprof_is(const uint8_t *bytes, size_t size);

// Returns the profile's stacks in *ret_text, which the caller frees, with its counts of samples; if
// it has none, with the values that are shown by default. Leaves out samples below one. `name` is
// for messages.
struct error *pprof_fold(const char *name, const uint8_t *bytes, size_t size, char **ret_text,
                         size_t *ret_size);

// SPDX-License-Identifier: MIT
// input_file: a file that the user names to be read: a recording, a folded profile.
//
// Only what has an end is read, and without disturbing anybody: a regular file that stores
// something, /dev/null, or what is handed over as standard input. Other devices may have no end,
// a named pipe nobody who writes, and what the kernel makes up may be gone once it was read.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct error;

// Reads all of it. `path`: "-" and /dev/stdin are standard input; a pipe without a name, which a
// shell hands over as /dev/fd/63, is taken too. *ret is the caller's to free.
struct error *input_file_read(const char *path, uint8_t **ret, size_t *ret_size);

// What messages call it: "stdin" for "-".
const char *input_file_name(const char *path);

// SPDX-License-Identifier: MIT
// input_file: a file that the user names to be read: a recording, a folded profile.
//
// Only what ends is read, and only without disturbing anybody: a regular file that stores
// something, /dev/null, or what is handed over as standard input. Other devices may never end, a
// named pipe may have no writer, and what the kernel makes up may be gone once it is read.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct error;

// Reads all of it. `path`: "-" and /dev/stdin are standard input; a pipe without a name, which a
// shell hands over as /dev/fd/63, is taken too. *ret is the caller's to free.
struct error *input_file_read(const char *path, uint8_t **ret, size_t *ret_size);

// The name that messages use: "stdin" for "-".
const char *input_file_name(const char *path);

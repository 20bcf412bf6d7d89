// SPDX-License-Identifier: MIT
// input_file: reads a file that the user names, such as a recording or a folded profile.
//
// Reads only what ends, and what reading does not change: a regular file of real storage,
// /dev/null, or standard input. Other devices may never end, a named pipe may have no writer, and
// reading a file that the kernel makes up may use it up.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct error;

// Reads all of the file. The paths "-" and /dev/stdin mean standard input; an unnamed pipe, which a
// shell passes as /dev/fd/63, is read, too. The caller frees *ret.
struct error *input_file_read(const char *path, uint8_t **ret, size_t *ret_size);

// Returns the name that messages use: "stdin" for "-".
const char *input_file_name(const char *path);

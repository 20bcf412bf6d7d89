// SPDX-License-Identifier: MIT
// input_file: reads a file that the user names, such as a recording or a folded profile.
//
// Reads only what has an end and is not changed by reading: a regular file of real storage,
// /dev/null, or standard input. Other devices may never end, a named pipe may have no writer, and
// reading a file that the kernel makes up may use it up.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

// A file that is read piece by piece.
struct input_file {
	const char *path; // borrowed
	int fd;
	bool ended;     // all of it has been read
	uint8_t *bytes; // what has been read of it, without the lines that were given before
	size_t size, capacity;
	size_t n_given; // the first bytes, which input_file_lines has given
};

// Opens the file and reads its first bytes. The paths "-" and /dev/stdin mean standard input; an
// unnamed pipe, which a shell passes as /dev/fd/63, is read, too. On success input_file_close must
// follow.
struct error *input_file_open(const char *path, struct input_file *ret);
void input_file_close(struct input_file *file);

// Reads the rest of the file, so that file->bytes is all of it.
struct error *input_file_read_rest(struct input_file *file);

// Gives the next lines of the file (a struct input_file), as many as are at hand: *ret is valid
// until the next call. Only the file's last line may lack its newline. Size 0: there are no more.
struct error *input_file_lines(void *file, const char **ret, size_t *ret_size);

// Reads all of the file, which is opened as above. The caller frees *ret.
struct error *input_file_read(const char *path, uint8_t **ret, size_t *ret_size);

// Returns the name that messages use: "stdin" for "-".
const char *input_file_name(const char *path);

// SPDX-License-Identifier: MIT
// passed_files: hands the open files of modules from the sampler to the reader of its stream.
//
// The sampler opens each file while the target has it mapped. The reader could open it by its path
// alone, and would not find a file that was deleted or replaced, or code that has no file. So the
// descriptors go through a socket beside the stream (SCM_RIGHTS, unix(7)), each before the block
// that first names its module.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "module.h"

// The sampler's end.
struct passed_files {
	int socket; // borrowed; 0: nobody reads
	bool *sent; // of each module
	size_t n, capacity;
};

void passed_files_deinit(struct passed_files *files);

// Sends the files that were not sent yet. Never waits: what the socket does not take now is sent at
// the next call.
void passed_files_send(struct passed_files *files, const struct modules *modules);

// A file, with what the sampler knows of it.
struct passed_file {
	int fd;          // -1: it could not be received
	uint32_t number; // of its module, as the sampler numbers it
	struct file_user user;
	struct file_version version;
};

// The reader's end: files whose module the stream has not named yet.
struct taken_files {
	struct passed_file *items;
	size_t n, capacity;
};

// Closes the files.
void taken_files_deinit(struct taken_files *files);

// Adds the files that have come through the socket. Never waits.
void taken_files_receive(struct taken_files *files, int socket);

// Moves the file at `position` to its module, which owns it then.
void taken_files_give(struct taken_files *files, size_t position, struct module *module);

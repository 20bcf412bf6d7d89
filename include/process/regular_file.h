// SPDX-License-Identifier: MIT
// regular_file: finds out what a file is before it is opened.
//
// Opening can do harm: it arms a watchdog, rewinds a tape, lets a pipe's writer go; so can reading,
// which empties the kernel's log. So a file is first found without being opened (O_PATH), and
// opened only if it is a regular one that stores something.
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

enum storage {
	STORAGE_NONE,   // the kernel makes its contents up: proc, sysfs, tracefs...
	STORAGE_LOCAL,  // on a disk or in memory of this machine
	STORAGE_LAYERS, // an overlay: depends on its layers
	STORAGE_SERVER, // another machine or program serves it, which may stop answering
};

// Looks at what is behind an O_PATH descriptor: its status, and how it is stored; STORAGE_NONE also
// for anything but a regular file (errno: ENODEV), and for what may not be looked at (EACCES).
// Waits if a server does not answer.
enum storage regular_file_look(int path_fd, struct stat *ret);

// Opens for reading what is behind an O_PATH descriptor, with the thread's own rights; -1 with
// errno.
int regular_file_open(int path_fd);

// Looks and opens in one call: -1 with errno, regular_file_look's if it says STORAGE_NONE. For
// paths that the user or the kernel gives; follows links.
int regular_file_open_path(const char *path, struct stat *ret);

// True if a file system of that type, as mountinfo names it, stores its files on this machine.
bool regular_file_is_local_type(const char *type);

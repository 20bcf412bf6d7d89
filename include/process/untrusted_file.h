// SPDX-License-Identifier: MIT
// untrusted_file: the only way to files that a process or a recording names.
//
// It opens only regular files that store something (regular_file.h), with the rights of the process
// that names them (file_user.h), and no file can hold the profiler: what a server holds, or is not
// known to lie on this machine, is opened by a process that can be left behind (opener.h). A server
// that once did not answer is not asked again.
//
// All functions return a descriptor for reading, or -1 with errno: ENODEV if there is no such file,
// ESTALE if it is another one, ETIMEDOUT if its server does not answer.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct file_user;

// Opens the file at a path in the profiler's own view. `user` NULL: with the profiler's rights, for
// paths below a directory that the profiler's user has named.
int untrusted_file_open(const char *path, const struct file_user *user);

// Does the same only if the file has that device and inode: no other is opened.
int untrusted_file_open_same(const char *path, uint64_t device, uint64_t inode);

// Opens the file behind /proc/TID/LINK, a link of the kernel's to what the process has mapped, if
// it has that device (as maps has it) and inode.
int untrusted_file_open_link(int tid, const char *link, uint64_t device, uint64_t inode);

// Opens the file at a path as thread `tid` sees it, if it has that inode, with the thread's rights.
// *ret_sure: the device is the same, too; on this machine it may differ from that in maps
// (overlayfs, btrfs).
int untrusted_file_open_mapped(int tid, const char *path, uint64_t device, uint64_t inode,
                               bool *ret_sure);

// Opens the file at a path without links below the root directory of thread `tid`. *ret is its
// status; *ret_copy is true if the descriptor is that of a copy, which does not grow with the file.
int untrusted_file_open_growing(int tid, const char *path, struct stat *ret, bool *ret_copy);

// Returns why a file could not be opened, by errno; NULL: there is no such file.
const char *untrusted_file_failure(int number);

// Ends the process that has opened files, if there is one. For callers that open no more files, and
// go on.
void untrusted_file_end(void);

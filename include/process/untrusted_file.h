// SPDX-License-Identifier: MIT
// untrusted_file: the one way to files that a process or a recording names.
//
// Only a regular file that stores something is opened (regular_file.h), with the rights of the
// process whose file names it (file_user.h), and none can hold the profiler: what lies with a
// server, or is not known to lie on this machine, is opened by a process that can be left behind
// (opener.h). A server that did not answer once is not asked again.
//
// All return a descriptor for reading, or -1 with errno: ENODEV where there is no such file, ESTALE
// where it is another one, ETIMEDOUT where its server does not answer.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct file_user;

// The file at a path in the profiler's own view. `user` NULL: with the profiler's rights, for paths
// below a directory that the profiler's user has named.
int untrusted_file_open(const char *path, const struct file_user *user);

// The same, only if it has that device and inode: no other is opened.
int untrusted_file_open_same(const char *path, uint64_t device, uint64_t inode);

// The file behind /proc/TID/LINK, a link of the kernel's to what the process has mapped, if it is
// the one of that device (as maps has it) and inode.
int untrusted_file_open_link(int tid, const char *link, uint64_t device, uint64_t inode);

// The file at a path as thread `tid` sees it, likewise, with that thread's rights. *ret_sure: the
// device is the same, too; on this machine it may be another than maps has (overlayfs, btrfs).
int untrusted_file_open_mapped(int tid, const char *path, uint64_t device, uint64_t inode,
                               bool *ret_sure);

// The file at a path without links below the root directory of thread `tid`. *ret is its status,
// *ret_copy whether the descriptor is that of a copy, which does not grow with it.
int untrusted_file_open_growing(int tid, const char *path, struct stat *ret, bool *ret_copy);

// Why a file could not be opened, by errno; NULL: there is no such file.
const char *untrusted_file_failure(int number);

// For who opens no more files, and goes on: ends the process that has opened them, if there is one.
void untrusted_file_end(void);

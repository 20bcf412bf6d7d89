// SPDX-License-Identifier: MIT
// file_user: knows whose rights a file is opened with.
//
// A file that a process names is opened with that process's rights. With root's rights, a link that
// an ordinary user left would lead to files that the user may not see.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { FILE_USER_GROUPS = 64 };

struct file_user {
	bool known; // false: the profiler's own rights
	uid_t uid;  // for files, proc(5)
	gid_t gid;
	size_t n_groups;
	gid_t groups[FILE_USER_GROUPS]; // further groups are left out: fewer rights, not more
};

// Reads the user of thread `tid`; `known` is false if that cannot be read.
void file_user_read(int tid, struct file_user *ret);

// Does the same from the text of /proc/TID/status.
void file_user_parse(const char *text, struct file_user *ret);

// Gives the calling process, which has one thread, the user's rights for files, and no
// capabilities, if it may change them; if not, it keeps its own rights, without capabilities. Root
// stays root.
void file_user_become(const struct file_user *user);

// Makes the process, which has one thread, a process of the user of thread `tid`, in that thread's
// user namespace. It cannot go back, even if this fails. File systems that a user has mounted
// (FUSE) ask for that: root may not even look at what is in them. False if it is not allowed.
bool file_user_become_for_good(int tid);

// Restores the rights that the process had at the first call of this function. Call it once before
// file_user_become.
void file_user_return(void);

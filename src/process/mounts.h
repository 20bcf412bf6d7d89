// SPDX-License-Identifier: MIT
// mounts: reads which file systems a process sees from /proc/PID/mountinfo, proc(5). This does not
// ask the file systems, which may not answer.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mount {
	int id;
	uint64_t device;     // as in makedev(3)
	const char *root;    // what of the file system is mounted there, mostly "/"
	const char *point;   // as the file has it: with \040 for a space
	const char *type;    // "ext4", "fuse.sshfs"
	const char *options; // of the file system, "rw,lowerdir=..."
};

struct mounts {
	char *text;
	struct mount *items; // in the order of mounting
	size_t count, capacity;
};

// Reads the mounts that thread `tid` sees; none if they cannot be read. Initializes `ret`.
void mounts_read(int tid, struct mounts *ret);

// Parses a text (from malloc), and takes it over; leaves out malformed lines.
void mounts_parse(char *text, struct mounts *ret);
void mounts_deinit(struct mounts *mounts);

// Returns the device's mount; NULL: there is none.
const struct mount *mounts_of_device(const struct mounts *mounts, uint64_t device);
const struct mount *mounts_by_id(const struct mounts *mounts, int id);

// Returns the mount that a path without links lies on; NULL: not known.
const struct mount *mounts_of_path(const struct mounts *mounts, const char *path);

// True if the files of the mount are stored on this machine. `own`: the mounts that the profiler
// sees, by which the layers of an overlay are looked up.
bool mounts_is_local(const struct mount *mount, const struct mounts *own);

// True if somebody with the profiler's rights mounted what thread `tid` sees: then an overlay's
// layers are where it says.
bool mounts_are_honest(int tid);

// SPDX-License-Identifier: MIT
#include "regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include "memory.h"

struct file_system {
	const char *type; // as in /proc/PID/mountinfo; NULL: not asked for by its name
	uint32_t magic;   // as of statfs(2); its numbers are in <linux/magic.h> and the sources
	enum storage storage;
};

// Those that store files. Of others, only files with blocks on a disk are taken, and treated as a
// server's: what the kernel makes up has no blocks.
static const struct file_system file_systems[] = {
    {"ext2", EXT4_SUPER_MAGIC, STORAGE_LOCAL},
    {"ext3", EXT4_SUPER_MAGIC, STORAGE_LOCAL},
    {"ext4", EXT4_SUPER_MAGIC, STORAGE_LOCAL},
    {"xfs", XFS_SUPER_MAGIC, STORAGE_LOCAL},
    {"btrfs", BTRFS_SUPER_MAGIC, STORAGE_LOCAL},
    {"bcachefs", 0xca451a4e, STORAGE_LOCAL},
    {"zfs", 0x2fc12fc1, STORAGE_LOCAL},
    {"f2fs", F2FS_SUPER_MAGIC, STORAGE_LOCAL},
    {"tmpfs", TMPFS_MAGIC, STORAGE_LOCAL},
    {"ramfs", RAMFS_MAGIC, STORAGE_LOCAL},
    {"rootfs", RAMFS_MAGIC, STORAGE_LOCAL},
    {"hugetlbfs", HUGETLBFS_MAGIC, STORAGE_LOCAL},
    {"squashfs", SQUASHFS_MAGIC, STORAGE_LOCAL},
    {"erofs", EROFS_SUPER_MAGIC_V1, STORAGE_LOCAL},
    {"cramfs", CRAMFS_MAGIC, STORAGE_LOCAL},
    {"iso9660", ISOFS_SUPER_MAGIC, STORAGE_LOCAL},
    {"udf", UDF_SUPER_MAGIC, STORAGE_LOCAL},
    {"vfat", MSDOS_SUPER_MAGIC, STORAGE_LOCAL},
    {"exfat", EXFAT_SUPER_MAGIC, STORAGE_LOCAL},
    {"ntfs3", 0x7366746e, STORAGE_LOCAL},
    {"jfs", 0x3153464a, STORAGE_LOCAL},
    {"nilfs2", NILFS_SUPER_MAGIC, STORAGE_LOCAL},
    {"reiserfs", REISERFS_SUPER_MAGIC, STORAGE_LOCAL},
    {"hfsplus", 0x482b, STORAGE_LOCAL},
    {NULL, OVERLAYFS_SUPER_MAGIC, STORAGE_LAYERS},
    {NULL, FUSE_SUPER_MAGIC, STORAGE_SERVER},
    {NULL, NFS_SUPER_MAGIC, STORAGE_SERVER},
    {NULL, CIFS_SUPER_MAGIC, STORAGE_SERVER},
    {NULL, SMB2_SUPER_MAGIC, STORAGE_SERVER},
    {NULL, V9FS_MAGIC, STORAGE_SERVER},
    {NULL, CEPH_SUPER_MAGIC, STORAGE_SERVER},
    {NULL, AFS_FS_MAGIC, STORAGE_SERVER},
    {NULL, CODA_SUPER_MAGIC, STORAGE_SERVER},
};

bool regular_file_is_local_type(const char *type)
{
	for (size_t i = 0; i < array_size(file_systems); i++)
		if (file_systems[i].type && strcmp(file_systems[i].type, type) == 0)
			return file_systems[i].storage == STORAGE_LOCAL;
	return false;
}

enum storage regular_file_look(int path_fd, struct stat *ret)
{
	struct statfs system = {0};

	if (fstat(path_fd, ret) != 0) {
		errno = errno == EACCES ? EACCES : ENODEV;
		return STORAGE_NONE;
	}
	errno = ENODEV;
	if (!S_ISREG(ret->st_mode))
		return STORAGE_NONE;
	// No regular file has type 0, but some servers do not give the type.
	if (fstatfs(path_fd, &system) != 0)
		system.f_type = 0;
	for (size_t i = 0; i < array_size(file_systems); i++)
		if (file_systems[i].magic == (uint32_t)system.f_type)
			return file_systems[i].storage;
	errno = ENODEV;
	return ret->st_blocks > 0 ? STORAGE_SERVER : STORAGE_NONE;
}

int regular_file_open(int path_fd)
{
	char path[32];

	// The descriptor holds the file: nothing else can take its place meanwhile.
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int regular_file_open_path(const char *path, struct stat *ret)
{
	_cleanup_close_ int path_fd = open(path, O_PATH | O_CLOEXEC);

	if (path_fd < 0)
		return -1;
	if (regular_file_look(path_fd, ret) != STORAGE_NONE)
		return regular_file_open(path_fd);
	return -1;
}

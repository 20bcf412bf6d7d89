// SPDX-License-Identifier: MIT
#include "code_watch.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proc.h"

enum { QUERY_EXECUTABLE = 0x04 };

// struct procmap_query of <linux/fs.h>, which older headers do not have.
struct query {
	uint64_t size, flags, address;
	uint64_t start, end, vma_flags, page_size, offset, inode;
	uint32_t device_major, device_minor;
	uint32_t name_size, build_id_size;
	uint64_t name_address, build_id_address;
};

#define PROCMAP_QUERY _IOWR('f', 17, struct query)

void code_watch_init(struct code_watch *watch)
{
	*watch = (struct code_watch){.maps_fd = -1};
}

static void close_maps(struct code_watch *watch)
{
	if (watch->maps_fd >= 0)
		close(watch->maps_fd);
	watch->maps_fd = -1;
}

void code_watch_deinit(struct code_watch *watch)
{
	close_maps(watch);
}

void code_watch_clear(struct code_watch *watch)
{
	watch->count = 0;
	watch->partial = watch->changed = false;
	close_maps(watch); // it is bound to the program that ran when it was opened
}

static bool is_same(const struct query *query, const struct mapping *mapping)
{
	return query->start == mapping->start && query->end == mapping->end &&
	       query->offset == mapping->file_offset && query->inode == mapping->inode &&
	       makedev(query->device_major, query->device_minor) == mapping->device;
}

// Looks at the mapping. True if it has changed, or if the program that had it is gone.
static bool is_gone(struct code_watch *watch, const struct mapping *mapping)
{
	struct query query = {
	    .size = sizeof(query),
	    .flags = QUERY_EXECUTABLE,
	    .address = mapping->start,
	};

	if (ioctl(watch->maps_fd, PROCMAP_QUERY, &query) == 0) {
		watch->changed |= !is_same(&query, mapping);
		return !is_same(&query, mapping);
	}
	watch->changed |= errno == ENOENT;
	watch->unknown = errno == ENOTTY || errno == EINVAL;
	return !watch->unknown;
}

static bool open_maps(struct code_watch *watch, int pid, int tid)
{
	if (watch->maps_fd < 0)
		watch->maps_fd = proc_open(pid, tid, "maps");
	return watch->maps_fd >= 0;
}

// Looks at the mapping, opening the process's maps if need be, and closes them if they are of no
// more use. True as is_gone is; false also if nothing can be asked.
static bool look(struct code_watch *watch, const struct mapping *mapping, int pid, int tid)
{
	if (!open_maps(watch, pid, tid) || !is_gone(watch, mapping))
		return false;
	close_maps(watch);
	return true;
}

bool code_watch_add(struct code_watch *watch, const struct mapping *mapping, int pid, int tid)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->items[i].start == mapping->start)
			return true;
	if (watch->unknown)
		return true;
	if (watch->count == CODE_WATCH_MAX)
		watch->partial = true;
	else
		watch->items[watch->count++] = *mapping;
	look(watch, mapping, pid, tid);
	return !watch->changed;
}

void code_watch_leave_out(struct code_watch *watch)
{
	watch->partial = true;
}

bool code_watch_changed(struct code_watch *watch, int pid, int tid)
{
	// All of them, each time: with some of them, code is named by what was there before until
	// its turn comes.
	for (size_t i = 0; i < watch->count && !watch->unknown; i++)
		if (look(watch, &watch->items[i], pid, tid))
			return true;
	return false;
}

bool code_watch_is_valid(struct code_watch *watch, int pid, int tid)
{
	return !watch->partial && open_maps(watch, pid, tid) &&
	       !code_watch_changed(watch, pid, tid) && !watch->unknown;
}

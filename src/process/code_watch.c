// SPDX-License-Identifier: MIT
#include "code_watch.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proc.h"

enum {
	MAX_LOOKS = 16, // at once
	QUERY_EXECUTABLE = 0x04,
};

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

void code_watch_add(struct code_watch *watch, const struct mapping *mapping)
{
	if (!mapping->inode || watch->unknown || watch->count == CODE_WATCH_MAX)
		return;
	for (size_t i = 0; i < watch->count; i++)
		if (watch->items[i].start == mapping->start)
			return;
	watch->items[watch->count++] = *mapping;
}

void code_watch_clear(struct code_watch *watch)
{
	watch->count = 0;
	watch->next = 0;
	close_maps(watch); // it is bound to the program that ran when it was opened
}

static bool is_there(struct code_watch *watch, const struct mapping *mapping)
{
	struct query query = {
	    .size = sizeof(query),
	    .flags = QUERY_EXECUTABLE,
	    .address = mapping->start,
	};

	if (ioctl(watch->maps_fd, PROCMAP_QUERY, &query) != 0) {
		watch->unknown = errno == ENOTTY || errno == EINVAL;
		return watch->unknown;
	}
	return query.start == mapping->start && query.end == mapping->end &&
	       query.offset == mapping->file_offset && query.inode == mapping->inode &&
	       makedev(query.device_major, query.device_minor) == mapping->device;
}

bool code_watch_changed(struct code_watch *watch, int pid, int tid)
{
	if (watch->count == 0 || watch->unknown)
		return false;
	if (watch->maps_fd < 0)
		watch->maps_fd = proc_open(pid, tid, "maps");
	for (size_t i = 0; i < watch->count && i < MAX_LOOKS && watch->maps_fd >= 0; i++) {
		const struct mapping *mapping = &watch->items[watch->next];
		watch->next = (watch->next + 1) % watch->count;
		if (!is_there(watch, mapping)) {
			close_maps(watch);
			return true;
		}
	}
	return false;
}

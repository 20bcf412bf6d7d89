// SPDX-License-Identifier: MIT
#include "mapped_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "maps.h"
#include "memory.h"
#include "module.h"
#include "untrusted_file.h"

enum {
	HEAD_BYTES = 4096,  // of a file: its ELF header, usually with its build ID
	MAX_NEIGHBOURS = 8, // mappings that are looked at for one of the same file
	N_PROBES = 16,
	PROBE_BYTES = 256,
};

// Turns "\012" in a path of maps into the newline that it stands for; but it may be those four
// characters.
static char *unescape(const char *path)
{
	char *result = memory_strdup(path);

	for (char *at = result; (at = strstr(at, "\\012")); at++) {
		*at = '\n';
		memmove(at + 1, at + 4, strlen(at + 4) + 1);
	}
	return result;
}

static bool read_memory(int tid, uint64_t address, void *buffer, size_t size)
{
	struct iovec local = {buffer, size}, remote = {(void *)(uintptr_t)address, size};

	return process_vm_readv(tid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

// Returns the mapping of the same file's beginning; NULL: there is none nearby.
static const struct mapping *find_head(const struct maps *maps, const struct mapping *mapping)
{
	for (size_t i = 0; i < MAX_NEIGHBOURS && mapping >= maps->items; i++, mapping--)
		if (mapping->inode && mapping->file_offset == 0)
			return mapping;
	return NULL;
}

// True if the file is the one that is mapped. Its inode's number is not enough: another file
// system, mounted over the directory since, has the same numbers. So the beginning of the file must
// equal what is mapped, which nobody changes, unless it is not mapped or cannot be read.
static bool is_what_is_mapped(int fd, int tid, const struct maps *maps,
                              const struct mapping *mapping)
{
	const struct mapping *head = find_head(maps, mapping);
	unsigned char file[HEAD_BYTES], memory[HEAD_BYTES];

	if (!head || head->inode != mapping->inode || head->device != mapping->device ||
	    !head->readable)
		return true;
	const ssize_t n = pread(fd, file, sizeof(file), 0);
	if (n <= 0 || !read_memory(tid, head->start, memory, (size_t)n))
		return true;
	return memcmp(file, memory, (size_t)n) == 0;
}

static int open_by_path(int tid, const struct maps *maps, const struct mapping *mapping,
                        const char *path)
{
	bool sure = false;
	const int fd =
	    untrusted_file_open_mapped(tid, path, mapping->device, mapping->inode, &sure);

	// Do not wait for a page of memory that a server holds.
	if (fd < 0 || sure || is_what_is_mapped(fd, tid, maps, mapping))
		return fd;
	close(fd);
	errno = ESTALE;
	return -1;
}

static int open_link(int tid, const struct mapping *mapping, const char *link)
{
	return untrusted_file_open_link(tid, link, mapping->device, mapping->inode);
}

// True if trying further ways is useless after this error.
static bool is_final(int number)
{
	return number == ENODEV || number == ETIMEDOUT || number == EINTR || number == EFBIG;
}

// Tries map_files first, which needs privileges but works for deleted files too; then the path, if
// it is still the same file; and last the program, which its users can always open.
int mapped_file_open(int tid, const struct maps *maps, const struct mapping *mapping,
                     const char *path)
{
	char link[64];

	snprintf(link, sizeof(link), "map_files/%lx-%lx", (unsigned long)mapping->start,
	         (unsigned long)mapping->end);
	int fd = open_link(tid, mapping, link);
	if (fd < 0 && !is_final(errno))
		fd = open_by_path(tid, maps, mapping, path);
	if (fd < 0 && !is_final(errno) && strstr(path, "\\012")) {
		_cleanup_free_ char *plain = unescape(path);
		fd = open_by_path(tid, maps, mapping, plain);
	}
	if (fd < 0 && !is_final(errno)) {
		const int number = errno;
		fd = open_link(tid, mapping, "exe");
		errno = number;
	}
	return fd;
}

static bool are_of_one_file(const struct mapping *a, const struct mapping *b)
{
	return a->inode && a->inode == b->inode && a->device == b->device;
}

const struct mapping *mapped_file_beside(const struct maps *maps, const struct mapping *mapping)
{
	const struct mapping *end = maps->items + maps->count, *below = mapping, *above = mapping;

	for (size_t i = 0; i < MAX_NEIGHBOURS && below > maps->items && !below->inode; i++)
		below--;
	for (size_t i = 0; i < MAX_NEIGHBOURS && above + 1 < end && !above->inode; i++)
		above++;
	if (are_of_one_file(below, above))
		return below;
	// gold's executable segment is the first. Where a file begins above, nothing of it is
	// below.
	return above == mapping + 1 && above->inode && above->file_offset > 0 ? above : NULL;
}

// Compares the mapping's memory with the file in places that far apart. False if one differs.
static bool probe(int tid, const struct mapping *mapping, struct module *module, uint64_t address,
                  uint64_t step, size_t *ret_compared)
{
	unsigned char file[PROBE_BYTES], memory[PROBE_BYTES];

	*ret_compared = 0;
	for (size_t i = 0; i < N_PROBES; i++) {
		const size_t n = module_read_code(module, address + i * step, file, sizeof(file));
		if (n == 0)
			continue; // after its end, where a page is filled up
		if (!read_memory(tid, mapping->start + i * step, memory, n) ||
		    memcmp(file, memory, n) != 0)
			return false;
		++*ret_compared;
	}
	return true;
}

bool mapped_file_holds_code(int tid, const struct mapping *mapping, struct module *module,
                            uint64_t address)
{
	uint64_t step = (mapping->end - mapping->start) / N_PROBES;
	size_t n_compared;

	// There may be only a little code in a large page.
	do {
		if (!probe(tid, mapping, module, address, step, &n_compared))
			return false;
		step /= 2;
	} while (n_compared < N_PROBES / 2 && step >= PROBE_BYTES);
	return n_compared > 0;
}

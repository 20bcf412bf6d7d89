// SPDX-License-Identifier: MIT
#include "maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "hash.h"
#include "memory.h"
#include "proc.h"

// vm.max_map_count is 65,530 by default and may be raised; a line has less than 4,200 bytes.
static const size_t MAX_TEXT_BYTES = 256u << 20;

void maps_deinit(struct maps *maps)
{
	free(maps->items);
	free(maps->text);
	free(maps->read);
	*maps = (struct maps){0};
}

// Parses a hexadecimal number and the separator after it.
static bool parse_hex(char **text, char separator, uint64_t *ret)
{
	char *end;

	*ret = strtoull(*text, &end, 16);
	if (end == *text || *end != separator)
		return false;
	*text = end + 1;
	return true;
}

// True for huge pages without a file, which have one of the kernel's own (fs/hugetlbfs/inode.c,
// hugetlb_file_setup).
static bool is_anonymous_huge(const char *path)
{
	return strcmp(path, "/anon_hugepage (deleted)") == 0;
}

// Parses START-END PERM OFFSET MAJOR:MINOR INODE   PATH, proc(5).
static bool parse_line(const struct maps *maps, char *line, struct mapping *ret)
{
	uint64_t major_nr, minor_nr;
	struct mapping mapping = {0};

	if (!parse_hex(&line, '-', &mapping.start) || !parse_hex(&line, ' ', &mapping.end) ||
	    strnlen(line, 5) < 5)
		return false;
	mapping.readable = line[0] == 'r';
	mapping.executable = line[2] == 'x';
	mapping.shared = line[3] == 's';
	line += 5;
	if (!parse_hex(&line, ' ', &mapping.file_offset) || !parse_hex(&line, ':', &major_nr) ||
	    !parse_hex(&line, ' ', &minor_nr))
		return false;
	mapping.device = makedev(major_nr, minor_nr);
	mapping.inode = strtoull(line, &line, 10);
	line += strspn(line, " ");
	if (is_anonymous_huge(line)) {
		line += strlen(line);
		mapping.inode = mapping.device = 0;
	}
	mapping.path = line - maps->text;
	*ret = mapping;
	return mapping.start < mapping.end;
}

static void parse_text(struct maps *maps)
{
	char *save = NULL;

	maps->count = 0;
	for (char *line = strtok_r(maps->text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		struct mapping mapping;
		if (!parse_line(maps, line, &mapping))
			continue;
		if (maps->count && mapping.start < maps->items[maps->count - 1].end)
			continue;
		*array_push(maps->items, maps->count, maps->capacity) = mapping;
	}
}

void maps_parse(struct maps *maps, const char *text, size_t size)
{
	maps->text = memory_grow(maps->text, &maps->text_capacity, size + 1, 1);
	memcpy(maps->text, text, size);
	maps->text[size] = '\0';
	parse_text(maps);
}

// Reads the file into maps->read; returns its size, or 0 if that fails.
static size_t read_file(struct maps *maps, int fd)
{
	size_t size = 0;

	while (size <= MAX_TEXT_BYTES) {
		maps->read = memory_grow(maps->read, &maps->read_capacity, size + (64u << 10), 1);
		const ssize_t n = read(fd, maps->read + size, maps->read_capacity - size - 1);
		if (n < 0)
			return 0;
		if (n == 0)
			break;
		size += n;
	}
	return size;
}

static void take_read(struct maps *maps, size_t size)
{
	char *text = maps->text;
	const size_t capacity = maps->text_capacity;

	maps->changing = true;
	maps->text = maps->read;
	maps->text_capacity = maps->read_capacity;
	maps->text[size] = '\0';
	parse_text(maps);
	maps->read = text;
	maps->read_capacity = capacity;
	maps->changing = false;
}

bool maps_read(struct maps *maps, int pid, int tid)
{
	_cleanup_close_ int fd = proc_open(pid, tid, "maps");

	if (!maps->text && fd < 0)
		return false; // as empty as before
	maps->read = memory_grow(maps->read, &maps->read_capacity, 1, 1);
	const size_t size = fd >= 0 ? read_file(maps, fd) : 0;
	const uint64_t hash = hash_bytes(maps->read, size);
	if (hash == maps->text_hash)
		return false;
	maps->text_hash = hash;
	take_read(maps, size);
	return true;
}

const struct mapping *maps_find_from(const struct maps *maps, uint64_t address)
{
	size_t low = 0, high = maps->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (maps->items[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < maps->count ? &maps->items[low] : NULL;
}

const struct mapping *maps_find(const struct maps *maps, uint64_t address)
{
	const struct mapping *mapping = maps_find_from(maps, address);

	return mapping && mapping->start <= address ? mapping : NULL;
}

const char *maps_path(const struct maps *maps, const struct mapping *mapping)
{
	return maps->text + mapping->path;
}

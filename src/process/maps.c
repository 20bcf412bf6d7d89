#include "maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "hash.h"
#include "memory.h"
#include "proc.h"

// vm.max_map_count is 65,530 by default and may be raised; a line is below 4,200 bytes.
static const size_t MAX_TEXT_BYTES = 256u << 20;

void maps_deinit(struct maps *maps)
{
	free(maps->items);
	free(maps->text);
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

// Huge pages of no file have one of the kernel's own (fs/hugetlbfs/inode.c, hugetlb_file_setup).
static bool is_anonymous_huge(const char *path)
{
	return strcmp(path, "/anon_hugepage (deleted)") == 0;
}

// START-END PERM OFFSET MAJOR:MINOR INODE   PATH, proc(5).
static bool parse_line(const struct maps *maps, char *line, struct mapping *ret)
{
	uint64_t major_nr, minor_nr;
	struct mapping mapping = {0};

	if (!parse_hex(&line, '-', &mapping.start) || !parse_hex(&line, ' ', &mapping.end) ||
	    strnlen(line, 5) < 5)
		return false;
	mapping.readable = line[0] == 'r';
	mapping.executable = line[2] == 'x';
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
	maps->text_bytes = size + 1;
	parse_text(maps);
}

// Appends the file to text, from `start` on; returns where it ends, or start if it fails.
static size_t append_file(struct maps *maps, size_t start, int fd)
{
	size_t end = start;

	while (end - start <= MAX_TEXT_BYTES) {
		maps->text = memory_grow(maps->text, &maps->text_capacity, end + (64u << 10), 1);
		const ssize_t n = read(fd, maps->text + end, maps->text_capacity - end - 1);
		if (n < 0)
			return start;
		if (n == 0)
			break;
		end += n;
	}
	return end;
}

bool maps_read(struct maps *maps, int pid, int tid)
{
	_cleanup_close_ int fd = proc_open(pid, tid, "maps");

	if (!maps->text && fd < 0)
		return false; // as empty as before
	// Behind the strings in use, which stay if nothing has changed.
	const size_t start = maps->text_bytes;
	const size_t end = fd >= 0 ? append_file(maps, start, fd) : start;
	const uint64_t hash = hash_bytes(maps->text + start, end - start);

	if (hash == maps->text_hash)
		return false;
	maps->text_hash = hash;
	maps->text = memory_grow(maps->text, &maps->text_capacity, end + 1, 1);
	memmove(maps->text, maps->text + start, end - start);
	maps->text_bytes = end - start + 1;
	maps->text[end - start] = '\0';
	parse_text(maps);
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

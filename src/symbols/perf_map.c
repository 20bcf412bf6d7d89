// SPDX-License-Identifier: MIT
#include "perf_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "guard.h"
#include "interval_map.h"
#include "memory.h"
#include "proc.h"
#include "untrusted_file.h"

enum {
	CHUNK_BYTES = 256 << 10, // read in one tick: takes a millisecond or two
	MAX_LINE_BYTES = 8192,   // of a longer one the start
	MAX_ENTRIES = 1 << 20,
	MAX_NAME_BYTES = 192 << 20, // of all names together
	TAIL_BYTES = 64,            // of what was read last: still there, or the file is another
	GUARD_MEMORY_BYTES = 16 << 20,
};

// All that is read of one file.
#define MAX_FILE_BYTES (INT64_C(256) << 20)

// Time for the last reading: a hostile file may grow faster than it can be read.
#define FINISH_NS (5 * NS_PER_SECOND)

#define LOOK_EVERY_NS (NS_PER_SECOND / 2)

// The clock of the file's times has jiffies, and may have been set since the process began.
#define STALE_NS (2 * NS_PER_SECOND)

struct entry {
	uint64_t start, end;
	uint32_t name; // position in names
};

// The entries [first, end) by address. As later ones come, neighbours of like size are made one,
// so that there are few, and each entry is sorted a few times only.
struct run {
	size_t first, end;
	struct interval_map by_address;
};

struct perf_map {
	struct entry *entries; // as they came
	size_t n_entries, entries_capacity;
	size_t n_sorted; // of them
	char *names;
	size_t names_bytes, names_capacity;
	struct run *runs; // of those that count: the last ones
	size_t n_runs, runs_capacity;
	const char *unreadable;

	int fd; // -1: no file yet
	dev_t device;
	ino_t inode;
	off_t offset; // up to where it was read
	char tail[TAIL_BYTES];
	size_t tail_bytes;
	int64_t looked_ns;

	char line[MAX_LINE_BYTES]; // the start of the line that was not read to its end
	size_t line_bytes;
	char chunk[CHUNK_BYTES];
};

struct perf_map *perf_map_create(void)
{
	struct perf_map *map = memory_alloc_zeroed(1, sizeof(*map));

	map->fd = -1;
	return map;
}

static void forget_runs(struct perf_map *map)
{
	for (size_t i = 0; i < map->n_runs; i++)
		interval_map_deinit(&map->runs[i].by_address);
	map->n_runs = 0;
	map->n_sorted = map->n_entries;
}

static void close_file(struct perf_map *map)
{
	if (map->fd >= 0)
		close(map->fd);
	map->fd = -1;
}

void perf_map_destroy(struct perf_map *map)
{
	if (!map)
		return;
	close_file(map);
	forget_runs(map);
	free(map->runs);
	free(map->entries);
	free(map->names);
	free(map);
}

// Keeps the name of a new entry. False: there is no room.
static bool add_name(struct perf_map *map, const char *name)
{
	const size_t length = strlen(name);

	if (map->n_entries >= MAX_ENTRIES || map->names_bytes + length + 1 > MAX_NAME_BYTES) {
		map->unreadable = "it has too many entries";
		return false;
	}
	map->names =
	    memory_grow(map->names, &map->names_capacity, map->names_bytes + length + 1, 1);
	memcpy(map->names + map->names_bytes, name, length + 1);
	map->names_bytes += length + 1;
	return true;
}

static void add_entry(struct perf_map *map, uint64_t start, uint64_t end, const char *name)
{
	const uint32_t at = (uint32_t)map->names_bytes;

	if (add_name(map, name))
		*array_push(map->entries, map->n_entries, map->entries_capacity) =
		    (struct entry){.start = start, .end = end, .name = at};
}

void perf_map_set(struct perf_map *map, uint32_t code, const char *name)
{
	const uint32_t at = (uint32_t)map->names_bytes;

	if (code == PERF_MAP_NONE || code > MAX_ENTRIES || !add_name(map, name))
		return;
	while (map->n_entries < code) // the end of that name is the name of those that are missing
		*array_push(map->entries, map->n_entries, map->entries_capacity) =
		    (struct entry){.name = (uint32_t)map->names_bytes - 1};
	map->entries[code - 1].name = at;
	map->n_sorted = map->n_entries; // they have no address
}

// Parses "START SIZE NAME"; leaves out any other line.
static void parse_line(struct perf_map *map, char *line)
{
	char *end;

	if (line[0] == '-' || line[0] == ' ')
		return;
	const uint64_t start = strtoull(line, &end, 16);
	if (end == line || *end != ' ' || end[1] == '-' || end[1] == ' ')
		return;
	line = end + 1;
	const uint64_t size = strtoull(line, &end, 16);
	if (end == line || *end != ' ' || end[1] == '\0' || size == 0 || size > UINT64_MAX - start)
		return;
	add_entry(map, start, start + size, end + 1);
}

static void sort_run(const struct perf_map *map, struct run *run)
{
	interval_map_deinit(&run->by_address);
	for (size_t i = run->first; i < run->end; i++) // later ones win
		interval_map_add(&run->by_address, map->entries[i].start, map->entries[i].end, i,
		                 i);
	interval_map_build(&run->by_address);
}

static void add_run(struct perf_map *map, size_t first)
{
	struct run run = {.first = first, .end = map->n_entries};

	while (map->n_runs > 0) {
		struct run *last = &map->runs[map->n_runs - 1];
		if (last->end != run.first || last->end - last->first > 2 * (run.end - run.first))
			break;
		run.first = last->first;
		interval_map_deinit(&last->by_address);
		map->n_runs--;
	}
	sort_run(map, &run);
	*array_push(map->runs, map->n_runs, map->runs_capacity) = run;
}

void perf_map_parse(struct perf_map *map, const char *bytes, size_t size)
{
	while (size > 0) {
		const char *newline = memchr(bytes, '\n', size);
		const size_t length = newline ? (size_t)(newline - bytes) : size;
		const size_t room = sizeof(map->line) - 1 - map->line_bytes;
		const size_t kept = length < room ? length : room;

		memcpy(map->line + map->line_bytes, bytes, kept);
		map->line_bytes += kept;
		bytes += length + (newline != NULL);
		size -= length + (newline != NULL);
		if (!newline)
			break;
		map->line[map->line_bytes] = '\0';
		map->line_bytes = 0;
		parse_line(map, map->line);
	}
}

bool perf_map_sort(struct perf_map *map)
{
	if (map->n_entries == map->n_sorted)
		return false;
	add_run(map, map->n_sorted);
	map->n_sorted = map->n_entries;
	return true;
}

// Starts over: what is at the addresses now is not what was there, so later look-ups begin again.
static void start_over(struct perf_map *map)
{
	forget_runs(map);
	map->offset = 0;
	map->tail_bytes = map->line_bytes = 0;
}

void perf_map_forget(struct perf_map *map)
{
	start_over(map);
	close_file(map);
	map->looked_ns = 0;
}

uint32_t perf_map_find(const struct perf_map *map, uint64_t address)
{
	for (size_t i = map->n_runs; i-- > 0;) {
		const uint32_t id = interval_map_find(&map->runs[i].by_address, address);
		if (id != INTERVAL_NONE)
			return id + 1;
	}
	return PERF_MAP_NONE;
}

uint64_t perf_map_find_start(const struct perf_map *map, uint64_t address)
{
	const uint32_t code = perf_map_find(map, address);

	return code != PERF_MAP_NONE ? map->entries[code - 1].start : 0;
}

const char *perf_map_name(const struct perf_map *map, uint32_t code)
{
	if (code == PERF_MAP_NONE || code > map->n_entries)
		return NULL;
	return map->names + map->entries[code - 1].name;
}

size_t perf_map_size(const struct perf_map *map)
{
	return map->n_entries;
}

const char *perf_map_unreadable(const struct perf_map *map)
{
	return map->unreadable;
}

// A file to be opened. Guarded work changes nothing but this.
struct opening {
	int pid, tid;
	int fd; // -1: none
	struct stat status;
	bool is_copy;
};

static bool is_owner(uid_t uid, const struct proc_status *status)
{
	return uid == 0 || uid == status->uid || uid == status->euid;
}

// Opens it below the target's root, without links, which would lead into another file system.
static void open_file(struct opening *opening)
{
	struct proc_status status;
	char path[64];

	if (!proc_read_status(opening->pid, &status))
		return;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", status.ns_pid);
	opening->fd =
	    untrusted_file_open_growing(opening->tid, path, &opening->status, &opening->is_copy);
	if (opening->fd >= 0 && !is_owner(opening->status.st_uid, &status)) {
		close(opening->fd);
		opening->fd = -1;
	}
}

// True if it is from an earlier process of the same pid. stat's start_time counts from boot.
static bool is_stale(const struct opening *opening)
{
	const struct timespec *written = &opening->status.st_mtim;
	const int64_t boot_ns = clock_read_ns(CLOCK_REALTIME) - clock_read_ns(CLOCK_BOOTTIME);
	struct proc_stat stat;

	if (!proc_read_stat(-1, opening->pid, opening->tid, &stat))
		return true;
	const int64_t tick_ns = NS_PER_SECOND / sysconf(_SC_CLK_TCK);
	const int64_t written_ns = written->tv_sec * NS_PER_SECOND + written->tv_nsec;
	return written_ns + STALE_NS < boot_ns + (int64_t)stat.start_time * tick_ns;
}

// True if there is another file than before.
static bool look_for_file(struct perf_map *map, int pid, int tid)
{
	struct opening opening = {.pid = pid, .tid = tid, .fd = -1};

	open_file(&opening);
	if (opening.fd < 0)
		return false;
	const bool same = map->fd >= 0 && opening.status.st_ino == map->inode &&
	                  opening.status.st_dev == map->device;
	if ((same && !opening.is_copy) || is_stale(&opening)) {
		close(opening.fd);
		return false;
	}
	if (same) { // a later copy of it, which is read on
		close(map->fd);
		map->fd = opening.fd;
		return false;
	}
	const bool forgets = map->n_runs > 0;
	close_file(map);
	start_over(map);
	map->fd = opening.fd;
	map->device = opening.status.st_dev;
	map->inode = opening.status.st_ino;
	return forgets;
}

struct reading {
	struct perf_map *map;
	bool is_same; // the file has what was read before
	ssize_t n;
};

static void read_chunk(void *context)
{
	struct reading *reading = context;
	struct perf_map *map = reading->map;
	char tail[TAIL_BYTES];

	guard_opens_files(GUARD_MEMORY_BYTES); // its disk may be slow
	reading->is_same =
	    pread(map->fd, tail, map->tail_bytes, map->offset - (off_t)map->tail_bytes) ==
	        (ssize_t)map->tail_bytes &&
	    memcmp(tail, map->tail, map->tail_bytes) == 0;
	reading->n = pread(map->fd, map->chunk, sizeof(map->chunk), map->offset);
}

// Reads on. True if code was added, or forgotten.
static bool read_on(struct perf_map *map)
{
	struct reading reading = {.map = map, .n = -1};
	int64_t left_ns = GUARD_WAIT_NS;

	const enum guard_end end = guard_run(read_chunk, &reading, &left_ns);
	if (end != GUARD_DONE) {
		map->unreadable = guard_end_text(end);
		close_file(map);
		return false;
	}
	if (!reading.is_same) { // written anew, as by jcmd Compiler.perfmap
		start_over(map);
		return true;
	}
	if (reading.n <= 0)
		return false;
	const size_t n = reading.n;
	map->offset += reading.n;
	map->tail_bytes = n < TAIL_BYTES ? n : TAIL_BYTES;
	memcpy(map->tail, map->chunk + n - map->tail_bytes, map->tail_bytes);
	perf_map_parse(map, map->chunk, n);
	// Far behind, it is sorted when all is read: each time takes as long as there are entries.
	return n < sizeof(map->chunk) && perf_map_sort(map);
}

// True if there is more than was read, or less.
static bool has_changed(struct perf_map *map)
{
	struct stat status;

	if (map->fd < 0 || map->unreadable || fstat(map->fd, &status) != 0 ||
	    status.st_size == map->offset)
		return false;
	if (map->offset >= MAX_FILE_BYTES) {
		map->unreadable = "it is too large";
		return false;
	}
	return true;
}

bool perf_map_update(struct perf_map *map, int pid, int tid, int64_t now_ns)
{
	bool changed = false;

	if (map->looked_ns == 0 || now_ns - map->looked_ns >= LOOK_EVERY_NS) {
		map->looked_ns = now_ns;
		changed = look_for_file(map, pid, tid);
	}
	if (has_changed(map))
		changed |= read_on(map);
	return changed;
}

void perf_map_finish(struct perf_map *map)
{
	const int64_t until_ns = clock_now_ns() + FINISH_NS;

	for (off_t before = -1; has_changed(map) && map->offset != before;) {
		before = map->offset;
		read_on(map);
		if (clock_now_ns() > until_ns)
			map->unreadable = "reading it took too long";
	}
	perf_map_sort(map);
	close_file(map);
}

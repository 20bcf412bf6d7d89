// SPDX-License-Identifier: MIT
// perf_map: reads names of code that a process makes while it runs from /tmp/perf-PID.map.
//
// Runtimes with a JIT compiler write that file for perf(1): a line "START SIZE NAME" for each piece
// of code, numbers in hexadecimal (the kernel's tools/perf/Documentation/jit-interface.txt). It
// grows while the process runs, and is read as it grows: if the same addresses are used again,
// later lines apply from then on. The target may write anything there: its size, entries and names
// are bounded. Only a regular file that belongs to the target's user or to root is opened, never a
// link, and none that was last written before the process began.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_map;

enum { PERF_MAP_NONE = 0 }; // the map knows no such code

// Creates an empty map; never NULL. The caller owns it.
struct perf_map *perf_map_create(void);
void perf_map_destroy(struct perf_map *map); // NULL is accepted

// Looks for the file, in the file system and with the pid that thread `tid` of process `pid` sees,
// and reads on if it has grown, a little at a time. True if code was added, or forgotten.
bool perf_map_update(struct perf_map *map, int pid, int tid, int64_t now_ns);

// Call it when the process has executed another program. Forgets where its code was, but not its
// names.
void perf_map_forget(struct perf_map *map);

// Call it after the last sample. Reads the rest of the file, even if the process is gone.
void perf_map_finish(struct perf_map *map);

// Returns the code at the address of the process, as far as the map has been read: a number from 1
// on, or PERF_MAP_NONE.
uint32_t perf_map_find(const struct perf_map *map, uint64_t address);

// Returns where the code at the address begins, as far as the map has been read; 0: it knows none.
uint64_t perf_map_find_start(const struct perf_map *map, uint64_t address);

// Returns the name of a code, owned by the map; any bytes but NUL and newlines. NULL: there is no
// such code.
const char *perf_map_name(const struct perf_map *map, uint32_t code);

// Gives a name to the code that has that number in a recording. Other numbers may be missing, and
// perf_map_find does not know of it. For a map that is read from no file.
void perf_map_set(struct perf_map *map, uint32_t code, const char *name);

// Returns how much code it knows: its numbers are not larger.
size_t perf_map_size(const struct perf_map *map);

// Returns why the file was not read to its end: static text; NULL: nothing is wrong.
const char *perf_map_unreadable(const struct perf_map *map);

// Takes the next `size` bytes of the file, which may end anywhere; perf_map_sort then lets
// perf_map_find know them (true: there are new ones). For perf_map_update, and for tests.
void perf_map_parse(struct perf_map *map, const char *bytes, size_t size);
bool perf_map_sort(struct perf_map *map);

// SPDX-License-Identifier: MIT
// /tmp/perf-PID.map, read in pieces: all of it is the target's.
#include "fuzz.h"
#include "perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_map *map = perf_map_create();
	const size_t piece = size ? data[0] % 64 + 1 : 1;

	for (size_t at = 0; at < size; at += piece)
		perf_map_parse(map, (const char *)data + at, size - at < piece ? size - at : piece);
	perf_map_sort(map);
	for (uint64_t address = 0; address < 0x2000; address += 7) {
		const char *name = perf_map_name(map, perf_map_find(map, address));
		expect(!name || (strlen(name) > 0 && strlen(name) < size && !strchr(name, '\n')));
	}
	perf_map_destroy(map);
	return 0;
}

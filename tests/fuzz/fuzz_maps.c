// SPDX-License-Identifier: MIT
// /proc/PID/maps: the paths in it are the target's.
#include "fuzz.h"
#include "maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct maps maps = {0};
	uint64_t end = 0;

	maps_parse(&maps, (const char *)data, size);
	for (size_t i = 0; i < maps.count; i++) {
		const struct mapping *mapping = &maps.items[i];
		expect(mapping->start >= end && mapping->start < mapping->end);
		end = mapping->end;
		expect(maps_find(&maps, mapping->start) == mapping);
		expect(maps_find(&maps, end - 1) == mapping);
		expect(strlen(maps_path(&maps, mapping)) <= size);
	}
	maps_deinit(&maps);
	return 0;
}

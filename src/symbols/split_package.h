// SPDX-License-Identifier: MIT
// split_package: the split units of a DWARF package file (.dwp), in which a linker's tool has
// gathered the .dwo files of a program (DWARF 5, 7.3.5; for version 4
// https://gcc.gnu.org/wiki/DebugFissionDWP). libdw 0.188 does not read those; nor does it look for
// the .dwo files themselves where users keep them. For
// dwarf_index only.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct split_package;

// What a split unit's DIEs need of its skeleton, of which libdw does not know here.
struct split_base {
	bool detached;        // false: libdw knows
	uint64_t low_pc;      // of the unit; 0: none
	uint64_t ranges_base; // of version 4, in .debug_ranges
	const unsigned char
	    *range_lists; // of version 5: .debug_rnglists, borrowed from the package
	size_t range_lists_size;
};

// The package in the file behind fd, which it takes over; a .dwo file is one of a single unit.
// NULL: it is neither.
struct split_package *split_package_open(int fd);

// Call it when none of its DIEs is in use any more.
void split_package_close(struct split_package *package);

// Returns where in .debug_rnglists or .debug_ranges the list of ranges begins that an attribute (a
// Dwarf_Attribute) of the split unit names. 0: not known, or right at the start.
ptrdiff_t split_package_range_list(const struct split_base *base, void *attribute);

// Finds the DIE (a Dwarf_Die) of the split unit that belongs to the skeleton unit's DIE. False if
// it is not in there. Bounded by the package's size.
bool split_package_find(struct split_package *package, void *skeleton_die, void *ret_die,
                        struct split_base *ret_base);

// SPDX-License-Identifier: MIT
// mapped_file: opens the very file that a process has mapped, whatever has its name now.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct maps;
struct mapping;
struct module;

// Opens the file of a mapping whose path is `path`, as thread `tid` of the process sees it. -1 with
// errno as in untrusted_file.h, which also has the words for it.
int mapped_file_open(int tid, const struct maps *maps, const struct mapping *mapping,
                     const char *path);

// A program may move its code into memory of its own, for larger pages. Finds a mapping of the file
// that this anonymous one may be a part of: the one below, if one above is of the same file, or the
// next above, if the file's beginning was moved. NULL: there is none.
const struct mapping *mapped_file_beside(const struct maps *maps, const struct mapping *mapping);

// True if the mapping's memory holds what the module's file has for its addresses (the mapping's
// start is address `address` of the file). Compares some places.
bool mapped_file_holds_code(int tid, const struct mapping *mapping, struct module *module,
                            uint64_t address);

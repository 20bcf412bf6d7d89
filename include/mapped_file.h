// mapped_file: the very file that a process has mapped, whatever stands under its name now.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct maps;
struct mapping;
struct module;

// Opens the file of a mapping whose path is `path`, as the process `pid` sees it by its thread
// `tid`. -1 with errno: ENODEV where it is no regular file, ESTALE where another one stands there.
int mapped_file_open(int pid, int tid, const struct maps *maps, const struct mapping *mapping,
                     const char *path);

// Why it could not be opened, by errno; NULL: it is none that has symbols.
const char *mapped_file_failure(int number);

// A program may move its code into memory of its own, for larger pages. Between which mappings of
// one file does the anonymous one lie? The lower one; NULL: between none.
const struct mapping *mapped_file_around(const struct maps *maps, const struct mapping *mapping);

// Does the mapping's memory hold what the module's file has for its addresses (the mapping's start
// is address `address` of the file)? Compared in some places.
bool mapped_file_holds_code(int tid, const struct mapping *mapping, struct module *module,
                            uint64_t address);

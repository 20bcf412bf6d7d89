// SPDX-License-Identifier: MIT
// loaded_symbol: looks up exported symbols of the files that a process has loaded, in its memory.
//
// It uses the hash table that the dynamic section names for the process's own linker (DT_GNU_HASH:
// bloom filter, buckets, chains; see the System V gABI and glibc's elf/dl-lookup.c), so that it
// mostly takes only a few reads to find that a symbol is not there. It opens no file.
#pragma once

#include <stdint.h>

#include "resident.h"

struct loaded_file {
	struct resident *resident; // borrowed
	int tid;
	uint64_t bias;                   // address in the process - address in the file
	uint64_t hash, symbols, strings; // of its dynamic section, addresses in the process
	uint32_t n_buckets, first_hashed, bloom_words, bloom_shift;
};

enum loaded_answer {
	LOADED_YES,
	LOADED_NO,
	LOADED_UNKNOWN, // a page of its tables is not in memory, or it has tables of another kind
};

// Reads the tables of the ELF file whose header is mapped at `start`.
enum loaded_answer loaded_file_read(struct resident *resident, int tid, uint64_t start,
                                    struct loaded_file *ret);

// Finds the symbol's address in the process, and its size.
enum loaded_answer loaded_symbol_find(const struct loaded_file *file, const char *name,
                                      uint64_t *ret_address, uint64_t *ret_size);

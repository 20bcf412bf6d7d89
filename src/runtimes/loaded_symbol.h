// SPDX-License-Identifier: MIT
// loaded_symbol: exported symbols of the files that a process has loaded, looked up in its memory.
//
// The dynamic section leads to the hash table that the process's own linker uses (DT_GNU_HASH:
// bloom filter, buckets, chains; the System V ABI's gABI and glibc's elf/dl-lookup.c), so that a
// symbol that is not there mostly takes a few reads. No file is opened.
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
	LOADED_UNKNOWN, // some page of its tables is not in memory, or it is made otherwise
};

// The ELF file whose header is mapped at `start`.
enum loaded_answer loaded_file_read(struct resident *resident, int tid, uint64_t start,
                                    struct loaded_file *ret);

// The symbol's address in the process and its size.
enum loaded_answer loaded_symbol_find(const struct loaded_file *file, const char *name,
                                      uint64_t *ret_address, uint64_t *ret_size);

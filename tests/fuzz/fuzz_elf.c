// SPDX-License-Identifier: MIT
// Whole files of any bytes.
#include <elf.h>

#include "fuzz.h"
#include "module_work.h"

enum { N_ADDRESSES = 24 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t addresses[N_ADDRESSES] = {0};
	Elf64_Ehdr header;

	if (size < sizeof(header))
		return 0;
	memcpy(&header, data, sizeof(header));
	// All over the file, and around its entry.
	for (size_t i = 0; i < N_ADDRESSES; i++)
		addresses[i] = i < N_ADDRESSES / 2 ? size * i / (N_ADDRESSES / 2)
		                                   : header.e_entry + 32 * (i - N_ADDRESSES / 2);
	module_work(data, size, addresses, N_ADDRESSES);
	return 0;
}

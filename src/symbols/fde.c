// SPDX-License-Identifier: MIT
#include "fde.h"

#include <endian.h>
#include <stddef.h>
#include <string.h>

#include "module.h"

enum {
	// In the table: version, encodings of the pointer to .eh_frame, of the count, of the
	// entries; the pointer and the count; then pairs of a function and its entry.
	VERSION = 1,
	POINTER_ENCODING = 0x1b, // DW_EH_PE_pcrel | DW_EH_PE_sdata4
	COUNT_ENCODING = 0x03,   // DW_EH_PE_udata4
	TABLE_ENCODING = 0x3b,   // DW_EH_PE_datarel | DW_EH_PE_sdata4
	COUNT_AT = 8,
	PAIRS_AT = 12,
	PAIR_BYTES = 8,

	// In an entry: length, pointer to the CIE, start and size of the range.
	START_AT = 8,
	SIZE_AT = 12,
	ENTRY_BYTES = 16,
};

struct table {
	uint64_t address;
	const uint8_t *bytes;
	uint32_t count;
};

static uint32_t read_u32(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return le32toh(value);
}

static bool open_table(struct module *module, struct table *ret)
{
	size_t size;

	if (!module_find_section(module, ".eh_frame_hdr", &ret->address))
		return false;
	ret->bytes = module_data(module, ret->address, &size);
	if (!ret->bytes || size < PAIRS_AT || ret->bytes[0] != VERSION ||
	    ret->bytes[1] != POINTER_ENCODING || ret->bytes[2] != COUNT_ENCODING ||
	    ret->bytes[3] != TABLE_ENCODING)
		return false;
	ret->count = read_u32(ret->bytes + COUNT_AT);
	return ret->count <= (size - PAIRS_AT) / PAIR_BYTES;
}

static uint64_t address_in(const struct table *table, size_t pair, size_t field)
{
	return table->address +
	       (int32_t)read_u32(table->bytes + PAIRS_AT + pair * PAIR_BYTES + field);
}

// Counts the pairs that begin at or before the address.
static size_t count_before(const struct table *table, uint64_t address)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (address_in(table, middle, 0) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct range {
	uint64_t start, size;
};

// Reads the entry at an address, with that many bytes left in its section. Its addresses are
// encoded as POINTER_ENCODING says, as compilers and assemblers do.
static bool read_entry(uint64_t entry, const uint8_t *bytes, size_t left, struct range *ret)
{
	if (!bytes || left < ENTRY_BYTES)
		return false;
	*ret = (struct range){
	    .start = entry + START_AT + (int32_t)read_u32(bytes + START_AT),
	    .size = read_u32(bytes + SIZE_AT),
	};
	return true;
}

static bool find_by_table(struct module *module, const struct table *table, uint64_t address,
                          struct range *ret)
{
	const size_t n = count_before(table, address);
	size_t left;

	if (n == 0)
		return false;
	const uint64_t start = address_in(table, n - 1, 0), entry = address_in(table, n - 1, 4);
	const uint8_t *bytes = module_data(module, entry, &left);
	return read_entry(entry, bytes, left, ret) && ret->start == start &&
	       address - start < ret->size;
}

// Looks at one entry after the other: static programs have no table.
static bool find_by_scan(struct module *module, uint64_t address, struct range *ret)
{
	uint64_t section;
	size_t size;

	if (!module_find_section(module, ".eh_frame", &section))
		return false;
	const uint8_t *bytes = module_data(module, section, &size);
	for (size_t at = 0; bytes && at + ENTRY_BYTES <= size;) {
		const uint32_t length = read_u32(bytes + at);
		if (length == 0 || length >= size - at)
			return false; // the end, or an entry of 64 bits
		const bool is_cie = read_u32(bytes + at + sizeof(length)) == 0;
		if (!is_cie && read_entry(section + at, bytes + at, size - at, ret) &&
		    address - ret->start < ret->size)
			return true;
		at += sizeof(length) + length;
	}
	return false;
}

bool fde_find(struct module *module, uint64_t address, uint64_t *ret_start, uint64_t *ret_end)
{
	struct table table;
	struct range range;

	if (!(open_table(module, &table) ? find_by_table(module, &table, address, &range)
	                                 : find_by_scan(module, address, &range)))
		return false;
	*ret_start = range.start;
	*ret_end = range.start + range.size;
	return true;
}

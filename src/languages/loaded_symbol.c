// SPDX-License-Identifier: MIT
#include "loaded_symbol.h"

#include <elf.h>
#include <string.h>

enum {
	MAX_HEADERS = 32,
	MAX_DYNAMIC = 64, // entries
	MAX_CHAIN = 64,   // symbols of one bucket
	MAX_NAME = 64,
};

static bool read_at(const struct loaded_file *file, uint64_t address, void *bytes, size_t size)
{
	return resident_read(file->resident, file->tid, address, bytes, size);
}

struct dynamic {
	uint64_t address;
	size_t n_entries;
};

// Finds the dynamic section, and the bias.
static enum loaded_answer find_dynamic(struct loaded_file *file, uint64_t start,
                                       struct dynamic *ret)
{
	Elf64_Phdr headers[MAX_HEADERS];
	Elf64_Ehdr header;
	const Elf64_Phdr *dynamic = NULL;
	bool has_bias = false;

	if (!read_at(file, start, &header, sizeof(header)))
		return LOADED_UNKNOWN;
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(headers[0]) ||
	    header.e_phnum > MAX_HEADERS)
		return LOADED_NO;
	if (!read_at(file, start + header.e_phoff, headers, header.e_phnum * sizeof(headers[0])))
		return LOADED_UNKNOWN;
	for (size_t i = 0; i < header.e_phnum; i++) {
		if (headers[i].p_type == PT_DYNAMIC)
			dynamic = &headers[i];
		if (headers[i].p_type != PT_LOAD || headers[i].p_offset != 0)
			continue;
		file->bias = start - headers[i].p_vaddr;
		has_bias = true;
	}
	if (!dynamic || !has_bias)
		return LOADED_NO;
	const uint64_t n = dynamic->p_memsz / sizeof(Elf64_Dyn);
	*ret = (struct dynamic){
	    .address = file->bias + dynamic->p_vaddr,
	    .n_entries = n < MAX_DYNAMIC ? n : MAX_DYNAMIC,
	};
	return LOADED_YES;
}

// glibc has replaced addresses in the file by those in the process; others have not.
static uint64_t moved(const struct loaded_file *file, uint64_t address)
{
	return address < file->bias ? address + file->bias : address;
}

static void note_entry(struct loaded_file *file, const Elf64_Dyn *entry)
{
	if (entry->d_tag == DT_GNU_HASH)
		file->hash = moved(file, entry->d_un.d_ptr);
	else if (entry->d_tag == DT_SYMTAB)
		file->symbols = moved(file, entry->d_un.d_ptr);
	else if (entry->d_tag == DT_STRTAB)
		file->strings = moved(file, entry->d_un.d_ptr);
}

static enum loaded_answer read_dynamic(struct loaded_file *file, const struct dynamic *dynamic)
{
	Elf64_Dyn entries[MAX_DYNAMIC];

	if (!read_at(file, dynamic->address, entries, dynamic->n_entries * sizeof(entries[0])))
		return LOADED_UNKNOWN;
	for (size_t i = 0; i < dynamic->n_entries && entries[i].d_tag != DT_NULL; i++)
		note_entry(file, &entries[i]);
	return file->symbols && file->strings && file->hash ? LOADED_YES : LOADED_UNKNOWN;
}

enum loaded_answer loaded_file_read(struct resident *resident, int tid, uint64_t start,
                                    struct loaded_file *ret)
{
	uint32_t header[4];
	struct dynamic dynamic;

	*ret = (struct loaded_file){.resident = resident, .tid = tid};
	enum loaded_answer answer = find_dynamic(ret, start, &dynamic);
	if (answer == LOADED_YES)
		answer = read_dynamic(ret, &dynamic);
	if (answer != LOADED_YES)
		return answer;
	if (!read_at(ret, ret->hash, header, sizeof(header)))
		return LOADED_UNKNOWN;
	ret->n_buckets = header[0];
	ret->first_hashed = header[1];
	ret->bloom_words = header[2];
	ret->bloom_shift = header[3] & 63;
	return ret->n_buckets && ret->bloom_words ? LOADED_YES : LOADED_NO;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static enum loaded_answer is_called(const struct loaded_file *file, uint32_t index,
                                    const char *name, Elf64_Sym *ret)
{
	const size_t size = strlen(name) + 1;
	char found[MAX_NAME];

	if (size > sizeof(found) ||
	    !read_at(file, file->symbols + (uint64_t)index * sizeof(*ret), ret, sizeof(*ret)) ||
	    !read_at(file, file->strings + ret->st_name, found, size))
		return LOADED_UNKNOWN;
	return memcmp(found, name, size) == 0 && ret->st_shndx != SHN_UNDEF && ret->st_value
	           ? LOADED_YES
	           : LOADED_NO;
}

static enum loaded_answer search_chain(const struct loaded_file *file, uint64_t chains,
                                       uint32_t index, uint32_t hash, const char *name,
                                       Elf64_Sym *ret)
{
	uint32_t word = 0;

	for (size_t i = 0; i < MAX_CHAIN && !(word & 1); i++, index++) {
		const uint64_t at = chains + (uint64_t)(index - file->first_hashed) * sizeof(word);
		if (!read_at(file, at, &word, sizeof(word)))
			return LOADED_UNKNOWN;
		if ((word | 1) != (hash | 1))
			continue;
		const enum loaded_answer answer = is_called(file, index, name, ret);
		if (answer != LOADED_NO)
			return answer;
	}
	return LOADED_NO;
}

enum loaded_answer loaded_symbol_find(const struct loaded_file *file, const char *name,
                                      uint64_t *ret_address, uint64_t *ret_size)
{
	const uint32_t hash = gnu_hash(name);
	const uint64_t bloom = file->hash + 16;
	const uint64_t buckets = bloom + (uint64_t)file->bloom_words * 8;
	const uint64_t chains = buckets + (uint64_t)file->n_buckets * 4;
	uint64_t word;
	uint32_t index;
	Elf64_Sym symbol;

	if (!read_at(file, bloom + (hash / 64 % file->bloom_words) * 8, &word, sizeof(word)))
		return LOADED_UNKNOWN;
	if (!(word >> hash % 64 & 1) || !(word >> (hash >> file->bloom_shift) % 64 & 1))
		return LOADED_NO;
	if (!read_at(file, buckets + (uint64_t)(hash % file->n_buckets) * 4, &index, sizeof(index)))
		return LOADED_UNKNOWN;
	if (index < file->first_hashed)
		return LOADED_NO;
	const enum loaded_answer answer = search_chain(file, chains, index, hash, name, &symbol);
	if (answer != LOADED_YES)
		return answer;
	*ret_address = file->bias + symbol.st_value;
	*ret_size = symbol.st_size;
	return LOADED_YES;
}

// SPDX-License-Identifier: MIT
#include "unpack.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef HAVE_ZSTD
#include <zstd.h>

#include "memory.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

#define MAX_UNPACKED_BYTES (UINT64_C(4) << 30)

struct unpacking {
	int fd;
	uint64_t file_bytes;
	Elf64_Shdr *sections;
	size_t n_sections;
	uint64_t sections_offset; // in the file
	uint64_t unpacked_bytes;  // of all sections that are to be unpacked
};

static bool read_at(const struct unpacking *unpacking, uint64_t offset, void *ret, size_t size)
{
	return offset <= unpacking->file_bytes && size <= unpacking->file_bytes - offset &&
	       pread(unpacking->fd, ret, size, (off_t)offset) == (ssize_t)size;
}

static bool read_sections(struct unpacking *unpacking)
{
	Elf64_Ehdr header;
	struct stat status;

	if (fstat(unpacking->fd, &status) != 0)
		return false;
	unpacking->file_bytes = status.st_size;
	if (!read_at(unpacking, 0, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    header.e_shentsize != sizeof(Elf64_Shdr))
		return false;
	unpacking->sections_offset = header.e_shoff;
	unpacking->n_sections = header.e_shnum;
	const size_t bytes = unpacking->n_sections * sizeof(Elf64_Shdr);
	unpacking->sections = memory_alloc(bytes + 1);
	return read_at(unpacking, header.e_shoff, unpacking->sections, bytes);
}

// True if the section is to be unpacked. *ret is how it is compressed.
static bool is_packed(const struct unpacking *unpacking, const Elf64_Shdr *section, Elf64_Chdr *ret)
{
	return section->sh_flags & SHF_COMPRESSED && section->sh_type != SHT_NOBITS &&
	       section->sh_size > sizeof(*ret) &&
	       read_at(unpacking, section->sh_offset, ret, sizeof(*ret)) &&
	       ret->ch_type == ELFCOMPRESS_ZSTD;
}

// Measures what there is. False if there is nothing to unpack, or too much.
static bool measure(struct unpacking *unpacking)
{
	Elf64_Chdr packed;

	for (size_t i = 0; i < unpacking->n_sections; i++) {
		if (!is_packed(unpacking, &unpacking->sections[i], &packed))
			continue;
		if (packed.ch_size > MAX_UNPACKED_BYTES)
			return false;
		unpacking->unpacked_bytes += packed.ch_size;
		if (unpacking->unpacked_bytes > MAX_UNPACKED_BYTES)
			return false;
	}
	return unpacking->unpacked_bytes > 0;
}

static bool read_file(const struct unpacking *unpacking, unsigned char *ret)
{
	uint64_t done = 0;

	while (done < unpacking->file_bytes) {
		const ssize_t n =
		    pread(unpacking->fd, ret + done, unpacking->file_bytes - done, (off_t)done);
		if (n <= 0)
			return false;
		done += n;
	}
	return true;
}

// Unpacks to the space after the file's own contents. A section that is damaged stays as it is.
static void unpack_all(struct unpacking *unpacking, unsigned char *bytes)
{
	uint64_t end = unpacking->file_bytes;
	Elf64_Chdr packed;

	for (size_t i = 0; i < unpacking->n_sections; i++) {
		Elf64_Shdr *section = &unpacking->sections[i];
		if (!is_packed(unpacking, section, &packed) ||
		    section->sh_offset > unpacking->file_bytes ||
		    section->sh_size > unpacking->file_bytes - section->sh_offset)
			continue;
		if (ZSTD_decompress(bytes + end, packed.ch_size,
		                    bytes + section->sh_offset + sizeof(packed),
		                    section->sh_size - sizeof(packed)) != packed.ch_size)
			continue;
		section->sh_offset = end;
		section->sh_size = packed.ch_size;
		section->sh_addralign = packed.ch_addralign;
		section->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
		end += packed.ch_size;
	}
	memcpy(bytes + unpacking->sections_offset, unpacking->sections,
	       unpacking->n_sections * sizeof(*unpacking->sections));
}

// Makes a memory file; -1: it cannot be made.
static int make_unpacked(struct unpacking *unpacking)
{
	const uint64_t size = unpacking->file_bytes + unpacking->unpacked_bytes;
	const int fd = memfd_create("unpacked", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	unsigned char *bytes = ftruncate(fd, (off_t)size) == 0
	                           ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
	                           : MAP_FAILED;
	const bool ok = bytes != MAP_FAILED && read_file(unpacking, bytes);
	if (ok)
		unpack_all(unpacking, bytes);
	if (bytes != MAP_FAILED)
		munmap(bytes, size);
	if (ok)
		return fd;
	close(fd);
	return -1;
}

int unpack_sections(int fd)
{
	struct unpacking unpacking = {.fd = fd};
	int unpacked = -1;

	if (fd >= 0 && read_sections(&unpacking) && measure(&unpacking))
		unpacked = make_unpacked(&unpacking);
	free(unpacking.sections);
	if (unpacked < 0)
		return fd;
	close(fd);
	return unpacked;
}

#else

int unpack_sections(int fd)
{
	return fd;
}

#endif

// SPDX-License-Identifier: MIT
#include "jit_object.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "arch.h"
#include "elf_relocation.h"
#include "jit_eh_frame.h"

// An object file. Fields may lie at any address: all are copied.
struct object {
	uint8_t *bytes;
	size_t size;
	size_t table_bytes; // bytes of the tables that were read
	Elf64_Ehdr header;
};

static bool holds(const struct object *object, uint64_t offset, uint64_t size)
{
	return offset <= object->size && size <= object->size - offset;
}

static bool read_at(const struct object *object, uint64_t offset, void *ret, size_t size)
{
	if (!holds(object, offset, size))
		return false;
	memcpy(ret, object->bytes + offset, size);
	return true;
}

static uint64_t section_at(const struct object *object, size_t index)
{
	return object->header.e_shoff + index * sizeof(Elf64_Shdr);
}

static bool read_section(const struct object *object, size_t index, Elf64_Shdr *ret)
{
	return index < object->header.e_shnum &&
	       read_at(object, section_at(object, index), ret, sizeof(*ret));
}

static bool has_bytes(const struct object *object, const Elf64_Shdr *section)
{
	return section->sh_type != SHT_NOBITS &&
	       holds(object, section->sh_offset, section->sh_size);
}

// Call it before reading a table. False if the table is out of bounds, or if all tables read so far
// are larger than the object, which means that some overlap.
static bool take_table(struct object *object, const Elf64_Shdr *table)
{
	if (!has_bytes(object, table) || table->sh_size > object->size - object->table_bytes)
		return false;
	object->table_bytes += table->sh_size;
	return true;
}

static void place_symbols(struct object *object, const Elf64_Shdr *table)
{
	Elf64_Shdr section;
	Elf64_Sym symbol;

	if (!take_table(object, table))
		return;
	for (uint64_t at = 0; at + sizeof(symbol) <= table->sh_size; at += sizeof(symbol)) {
		memcpy(&symbol, object->bytes + table->sh_offset + at, sizeof(symbol));
		if (symbol.st_shndx == SHN_UNDEF ||
		    !read_section(object, symbol.st_shndx, &section))
			continue;
		symbol.st_value += section.sh_addr;
		memcpy(object->bytes + table->sh_offset + at, &symbol, sizeof(symbol));
	}
}

static void relocate_one(struct object *object, const Elf64_Shdr *target, const Elf64_Shdr *symbols,
                         const Elf64_Rela *rela)
{
	bool is_relative;
	const size_t width = elf_relocation_width(ELF64_R_TYPE(rela->r_info), &is_relative);
	const uint64_t index = ELF64_R_SYM(rela->r_info);
	Elf64_Sym symbol;

	if (width == 0 || rela->r_offset > target->sh_size ||
	    width > target->sh_size - rela->r_offset ||
	    index >= symbols->sh_size / sizeof(symbol) ||
	    !read_at(object, symbols->sh_offset + index * sizeof(symbol), &symbol, sizeof(symbol)))
		return;
	uint64_t value = symbol.st_value + (uint64_t)rela->r_addend;
	if (is_relative)
		value -= target->sh_addr + rela->r_offset;
	memcpy(object->bytes + target->sh_offset + rela->r_offset, &value, width); // little endian
}

// Relocates all sections except those of code, of which there is a better copy.
static void relocate(struct object *object, const Elf64_Shdr *relocations)
{
	Elf64_Shdr target, symbols;
	Elf64_Rela rela;

	if (!read_section(object, relocations->sh_info, &target) ||
	    !read_section(object, relocations->sh_link, &symbols) ||
	    target.sh_flags & (SHF_EXECINSTR | SHF_COMPRESSED) || symbols.sh_type != SHT_SYMTAB ||
	    !has_bytes(object, &target) || !has_bytes(object, &symbols) ||
	    !take_table(object, relocations))
		return;
	for (uint64_t at = 0; at + sizeof(rela) <= relocations->sh_size; at += sizeof(rela)) {
		memcpy(&rela, object->bytes + relocations->sh_offset + at, sizeof(rela));
		relocate_one(object, &target, &symbols, &rela);
	}
}

static bool is_called(const struct object *object, const Elf64_Shdr *section, const char *name)
{
	const size_t size = strlen(name) + 1;
	Elf64_Shdr names;

	return read_section(object, object->header.e_shstrndx, &names) &&
	       has_bytes(object, &names) && section->sh_name <= names.sh_size &&
	       size <= names.sh_size - section->sh_name &&
	       memcmp(object->bytes + names.sh_offset + section->sh_name, name, size) == 0;
}

// Finds the first section of code that has a place. False if none has.
static bool find_text(const struct object *object, Elf64_Shdr *ret)
{
	for (size_t i = 0; read_section(object, i, ret); i++)
		if (ret->sh_flags & SHF_EXECINSTR && ret->sh_addr != 0 &&
		    ret->sh_size <= UINT64_MAX / 2 - ret->sh_addr)
			return true;
	return false;
}

// Places .eh_frame: a table that does not say where it is to lie has not been relocated either.
static void place_eh_frame(struct object *object)
{
	Elf64_Shdr text, section;

	if (!find_text(object, &text))
		return;
	for (size_t i = 0; read_section(object, i, &section); i++) {
		if (section.sh_addr != 0 || !is_called(object, &section, ".eh_frame") ||
		    !take_table(object, &section))
			continue;
		section.sh_addr = (text.sh_addr + text.sh_size + 7) & ~(uint64_t)7;
		memcpy(object->bytes + section_at(object, i), &section, sizeof(section));
		jit_eh_frame_place(&(struct jit_eh_frame){
		    .bytes = object->bytes + section.sh_offset,
		    .size = section.sh_size,
		    .address = section.sh_addr,
		    .text = text.sh_addr,
		});
		return;
	}
}

// Changes the kinds of sections, as the last step: the code's extent, and that no relocation is
// left.
static void finish_sections(struct object *object, Elf64_Phdr *ret)
{
	uint64_t start = UINT64_MAX, end = 0;
	Elf64_Shdr section;

	for (size_t i = 0; read_section(object, i, &section); i++) {
		if (section.sh_type == SHT_RELA)
			section.sh_type = SHT_NULL;
		if (section.sh_type == ARCH_NATIVE->elf_unwind_section)
			section.sh_type = SHT_PROGBITS; // .eh_frame
		memcpy(object->bytes + section_at(object, i), &section, sizeof(section));
		if (!(section.sh_flags & SHF_EXECINSTR) || section.sh_addr == 0 ||
		    section.sh_size > UINT64_MAX - section.sh_addr)
			continue;
		start = section.sh_addr < start ? section.sh_addr : start;
		end = section.sh_addr + section.sh_size > end ? section.sh_addr + section.sh_size
		                                              : end;
	}
	*ret = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_align = 1};
	if (start < end) {
		ret->p_vaddr = ret->p_paddr = start;
		ret->p_memsz = end - start;
	}
}

// Adds one segment, for the code: programs have segments.
static size_t add_segment(struct object *object, const Elf64_Phdr *segment)
{
	const size_t at = (object->size + 7) & ~(size_t)7;

	memset(object->bytes + object->size, 0, at - object->size);
	memcpy(object->bytes + at, segment, sizeof(*segment));
	object->header.e_type = ET_EXEC;
	object->header.e_phoff = at;
	object->header.e_phentsize = sizeof(*segment);
	object->header.e_phnum = 1;
	memcpy(object->bytes, &object->header, sizeof(object->header));
	return at + sizeof(*segment);
}

size_t jit_object_place(uint8_t *bytes, size_t size)
{
	struct object object = {.bytes = bytes, .size = size};
	Elf64_Shdr section;
	Elf64_Phdr segment;

	if (!read_at(&object, 0, &object.header, sizeof(object.header)))
		return 0;
	const bool is_relocatable = object.header.e_type == ET_REL;
	if (!is_relocatable && object.header.e_phnum > 0)
		return size;
	if (object.header.e_shentsize != sizeof(section) ||
	    object.header.e_machine != ARCH_NATIVE->elf_machine ||
	    !holds(&object, object.header.e_shoff, object.header.e_shnum * sizeof(section)))
		return 0;
	for (size_t i = 0; read_section(&object, i, &section); i++)
		if (is_relocatable && section.sh_type == SHT_SYMTAB)
			place_symbols(&object, &section);
	for (size_t i = 0; read_section(&object, i, &section); i++)
		if (is_relocatable && section.sh_type == SHT_RELA)
			relocate(&object, &section);
	place_eh_frame(&object);
	finish_sections(&object, &segment);
	return add_segment(&object, &segment);
}

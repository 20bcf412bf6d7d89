// SPDX-License-Identifier: MIT
#include "jit_object.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "arch.h"
#include "elf_relocation.h"

// --- Tables whose pointers are relative to the code
//
// PHP's and LuaJIT's compilers make them from one template (Mike Pall's lj_gdbjit.c), with
// DW_EH_PE_textrel | DW_EH_PE_udata4 and without relocations: GDB adds .text's address. libdw adds
// nothing.

// The bytes of an .eh_frame, which are changed in place, the address where it is to lie, and that
// of .text.
struct jit_eh_frame {
	uint8_t *bytes;
	size_t size;
	uint64_t address, text;
};

enum {
	MAX_AUGMENTATION = 8, // letters; there are five
	MAX_LEB128_BYTES = 10,
};

// Encodings of pointers (LSB core, 10.5.1): their size, and what they are relative to.
enum {
	ABSPTR = 0x00,
	UDATA4 = 0x03,
	UDATA8 = 0x04,
	SDATA4 = 0x0b,
	SDATA8 = 0x0c,
	SIZE_MASK = 0x0f,
	PCREL = 0x10,
	TEXTREL = 0x20,
	KIND_MASK = 0x70,
};

// An entry: its length (4 bytes), an id (4 bytes: 0 for a CIE, else how far back its CIE lies), and
// the rest (DWARF 5, 6.4.1; LSB core, 10.6.1).
struct entry {
	size_t at, id_at, end;
	uint32_t id;
};

static bool read_word(const struct jit_eh_frame *frame, size_t at, uint32_t *ret)
{
	if (at > frame->size || sizeof(*ret) > frame->size - at)
		return false;
	memcpy(ret, frame->bytes + at, sizeof(*ret));
	return true;
}

static bool read_entry(const struct jit_eh_frame *frame, size_t at, struct entry *ret)
{
	uint32_t length;

	*ret = (struct entry){.at = at, .id_at = at + sizeof(length)};
	// 0 ends the table; UINT32_MAX marks the 64-bit format, which JIT compilers do not need.
	if (!read_word(frame, at, &length) || length < sizeof(ret->id) || length == UINT32_MAX ||
	    length > frame->size - ret->id_at)
		return false;
	ret->end = ret->id_at + length;
	return read_word(frame, ret->id_at, &ret->id);
}

static bool skip_leb128(const struct jit_eh_frame *frame, size_t end, size_t *at)
{
	for (int i = 0; i < MAX_LEB128_BYTES && *at < end; i++)
		if (!(frame->bytes[(*at)++] & 0x80))
			return true;
	return false;
}

// Finds where in a CIE the encoding of its FDEs' pointers is; 0: nowhere, or after something that
// this does not know.
static size_t find_encoding(const struct jit_eh_frame *frame, const struct entry *cie)
{
	size_t at = cie->id_at + sizeof(cie->id);

	if (cie->id != 0 || cie->end - at < 1 + MAX_AUGMENTATION)
		return 0;
	const uint8_t version = frame->bytes[at++];
	const char *letters = (const char *)frame->bytes + at;
	const size_t n_letters = strnlen(letters, MAX_AUGMENTATION);
	at += n_letters + 1;
	if (letters[0] != 'z' || n_letters == MAX_AUGMENTATION)
		return 0;
	// Skip the factors of code and data, and the return address's register.
	if (!skip_leb128(frame, cie->end, &at) || !skip_leb128(frame, cie->end, &at))
		return 0;
	if (version == 1)
		at++;
	else if (!skip_leb128(frame, cie->end, &at))
		return 0;
	if (!skip_leb128(frame, cie->end, &at)) // the length of what the letters stand for
		return 0;
	for (size_t i = 1; i < n_letters && at < cie->end; i++) {
		if (letters[i] == 'R')
			return at;
		if (letters[i] != 'L' && letters[i] != 'S' && letters[i] != 'B')
			return 0;
		at += letters[i] == 'L';
	}
	return 0;
}

// Returns the encoding that replaces one relative to the text, of the same size; 0: none.
static uint8_t placed_encoding(uint8_t encoding)
{
	if ((encoding & KIND_MASK) != TEXTREL)
		return 0;
	switch (encoding & SIZE_MASK) {
	case UDATA4:
	case SDATA4:
		return PCREL | SDATA4;
	case ABSPTR:
	case UDATA8:
	case SDATA8:
		return UDATA8;
	default:
		return 0;
	}
}

// Adjusts the FDE's pointer to its code.
static bool place_pointer(const struct jit_eh_frame *frame, const struct entry *fde,
                          uint8_t encoding)
{
	const size_t at = fde->id_at + sizeof(fde->id);
	const bool is_long = placed_encoding(encoding) == UDATA8;
	uint64_t value = 0;

	if (fde->end - at < (is_long ? sizeof(value) : sizeof(uint32_t)))
		return false;
	memcpy(&value, frame->bytes + at, is_long ? sizeof(value) : sizeof(uint32_t));
	if ((encoding & SIZE_MASK) == SDATA4)
		value = (uint64_t)(int32_t)value;
	value += frame->text;
	if (is_long) {
		memcpy(frame->bytes + at, &value, sizeof(value));
		return true;
	}
	value -= frame->address + at;
	const int32_t offset = (int32_t)value;
	if ((uint64_t)offset != value)
		return false;
	memcpy(frame->bytes + at, &offset, sizeof(offset));
	return true;
}

// Adjusts an FDE, whose CIE still has the encoding that it came with.
static bool place_fde(const struct jit_eh_frame *frame, const struct entry *fde)
{
	struct entry cie;

	if (fde->id > fde->id_at || !read_entry(frame, fde->id_at - fde->id, &cie))
		return false;
	const size_t at = find_encoding(frame, &cie);
	return at == 0 || !placed_encoding(frame->bytes[at]) ||
	       place_pointer(frame, fde, frame->bytes[at]);
}

// Makes such pointers relative to their own place, or absolute if they have eight bytes. From the
// first entry on that has other pointers or is damaged, the table is left as it is.
static void jit_eh_frame_place(const struct jit_eh_frame *frame)
{
	struct entry entry;
	size_t placed = 0;

	for (; read_entry(frame, placed, &entry); placed = entry.end)
		if (entry.id != 0 && !place_fde(frame, &entry))
			break;
	for (size_t at = 0; at < placed && read_entry(frame, at, &entry); at = entry.end) {
		const size_t encoding = find_encoding(frame, &entry);
		if (encoding && placed_encoding(frame->bytes[encoding]))
			frame->bytes[encoding] = placed_encoding(frame->bytes[encoding]);
	}
}

// --- The object file

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

// SPDX-License-Identifier: MIT
// Sections of any bytes in a well-formed file, so that the fuzzer need not learn ELF first.
//
// The input: a count of addresses (u8), the addresses (u32 each); then for each section its number
// (u8), its address (u32), its size (u32) and its bytes. make_corpus.py writes the same.
#include <elf.h>

#include "fuzz.h"
#include "memory.h"
#include "module_work.h"

enum { CODE_BYTES = 256 << 20, MAX_ADDRESSES = 64 };

static const struct {
	const char *name;
	uint32_t type;
	uint64_t flags;
	uint32_t link; // position + 1
	uint64_t entry_bytes;
} kinds[] = {
    {".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0, 0},
    {".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, 0, 0},
    {".debug_frame", SHT_PROGBITS, 0, 0, 0},
    {".debug_info", SHT_PROGBITS, 0, 0, 0},
    {".debug_abbrev", SHT_PROGBITS, 0, 0, 0},
    {".debug_line", SHT_PROGBITS, 0, 0, 0},
    {".debug_str", SHT_PROGBITS, 0, 0, 0},
    {".debug_line_str", SHT_PROGBITS, 0, 0, 0},
    {".debug_ranges", SHT_PROGBITS, 0, 0, 0},
    {".debug_rnglists", SHT_PROGBITS, 0, 0, 0},
    {".debug_addr", SHT_PROGBITS, 0, 0, 0},
    {".debug_str_offsets", SHT_PROGBITS, 0, 0, 0},
    {".debug_types", SHT_PROGBITS, 0, 0, 0},
    {".strtab", SHT_STRTAB, 0, 0, 0},
    {".symtab", SHT_SYMTAB, 0, 14, sizeof(Elf64_Sym)},
    {".dynstr", SHT_STRTAB, SHF_ALLOC, 0, 0},
    {".dynsym", SHT_DYNSYM, SHF_ALLOC, 16, sizeof(Elf64_Sym)},
    {".rela.plt", SHT_RELA, SHF_ALLOC, 17, sizeof(Elf64_Rela)},
    {".plt", SHT_PROGBITS, SHF_ALLOC, 0, 16}, // .text holds it
    {".gnu_debugdata", SHT_PROGBITS, 0, 0, 0},
    {".gnu_debuglink", SHT_PROGBITS, 0, 0, 0},
    {".gnu_debugaltlink", SHT_PROGBITS, 0, 0, 0},
    {".gopclntab", SHT_PROGBITS, SHF_ALLOC, 0, 0},
};

enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

// The file: header, one segment, sections' bytes, their names, their headers.
struct file {
	uint8_t *bytes;
	size_t size, capacity;
	Elf64_Shdr sections[N_KINDS + 3]; // 0, kinds, .text, .shstrtab
};

static size_t append(struct file *file, const void *bytes, size_t size)
{
	const size_t at = (file->size + 7) & ~(size_t)7;

	file->bytes = memory_grow(file->bytes, &file->capacity, at + size, 1);
	memset(file->bytes + file->size, 0, at - file->size);
	if (size)
		memcpy(file->bytes + at, bytes, size);
	file->size = at + size;
	return at;
}

static void add_sections(struct file *file, struct input *input)
{
	while (input->left) {
		const size_t kind = input_u8(input) % N_KINDS;
		const uint64_t address = input_u32(input);
		size_t size = input_u32(input);
		Elf64_Shdr *section = &file->sections[kind + 1];
		if (size > input->left)
			size = input->left;
		*section = (Elf64_Shdr){
		    .sh_type = kinds[kind].type,
		    .sh_flags = kinds[kind].flags,
		    .sh_addr = kinds[kind].flags & SHF_ALLOC ? address : 0,
		    .sh_offset = append(file, input->data, size),
		    .sh_size = size,
		    .sh_link = kinds[kind].link,
		    .sh_entsize = kinds[kind].entry_bytes,
		    .sh_addralign = 1,
		};
		input->data += size;
		input->left -= size;
	}
	file->sections[N_KINDS + 1] = (Elf64_Shdr){
	    .sh_type = SHT_NOBITS,
	    .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
	    .sh_addr = 0x1000,
	    .sh_size = CODE_BYTES,
	};
}

static void add_names(struct file *file)
{
	char names[1024] = "";
	size_t at = 1;

	for (size_t i = 0; i < N_KINDS; i++) {
		file->sections[i + 1].sh_name = at;
		strcpy(names + at, kinds[i].name);
		at += strlen(kinds[i].name) + 1;
	}
	file->sections[N_KINDS + 1].sh_name = at;
	strcpy(names + at, ".text");
	at += sizeof(".text");
	file->sections[N_KINDS + 2] = (Elf64_Shdr){
	    .sh_type = SHT_STRTAB,
	    .sh_offset = append(file, names, at),
	    .sh_size = at,
	};
}

static void finish(struct file *file)
{
	Elf64_Ehdr header = {
	    .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	    .e_type = ET_EXEC,
	    .e_machine = EM_X86_64,
	    .e_version = EV_CURRENT,
	    .e_phoff = sizeof(Elf64_Ehdr),
	    .e_ehsize = sizeof(Elf64_Ehdr),
	    .e_phentsize = sizeof(Elf64_Phdr),
	    .e_phnum = 1,
	    .e_shentsize = sizeof(Elf64_Shdr),
	    .e_shnum = N_KINDS + 3,
	    .e_shstrndx = N_KINDS + 2,
	};
	const Elf64_Phdr segment = {
	    .p_type = PT_LOAD,
	    .p_flags = PF_R | PF_X,
	    .p_filesz = CODE_BYTES,
	    .p_memsz = CODE_BYTES,
	    .p_align = 4096,
	};

	header.e_shoff = append(file, file->sections, sizeof(file->sections));
	memcpy(file->bytes, &header, sizeof(header));
	memcpy(file->bytes + sizeof(header), &segment, sizeof(segment));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t headers[sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr)];
	uint64_t addresses[MAX_ADDRESSES];
	struct input input = {data, size};
	struct file file = {0};

	const size_t n = input_u8(&input) % (MAX_ADDRESSES + 1);
	for (size_t i = 0; i < n; i++)
		addresses[i] = input_u32(&input);
	append(&file, headers, sizeof(headers));
	add_sections(&file, &input);
	add_names(&file);
	finish(&file);
	module_work(file.bytes, file.size, addresses, n);
	free(file.bytes);
	return 0;
}

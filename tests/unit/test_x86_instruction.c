// SPDX-License-Identifier: MIT
// x86_instruction: each instruction of libc and of other programs against Zydis, a decoder that
// shares nothing with it: where it ends, and which general registers it writes.
//
//     test_x86_instruction FILE...
#include <fcntl.h>
#include <gelf.h>
#include <gnu/lib-names.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <unistd.h>

#include <Zydis/Zydis.h>

#include "memory.h"
#include "unit.h"
#include "x86_instruction.h"

enum { MAX_SHOWN = 8 };

static char **files;
static int n_files;

struct counts {
	const char *file;
	size_t n, n_lengths, n_writes; // seen, and wrong
};

static ZydisDecoder decoder;

static void show(struct counts *counts, const char *what, const uint8_t *bytes, size_t length)
{
	if (counts->n_lengths + counts->n_writes > MAX_SHOWN)
		return;
	print_message("# %s: %s:", counts->file, what);
	for (size_t i = 0; i < length; i++)
		print_message(" %02x", bytes[i]);
	print_message("\n");
}

// push, pop and leave are for those to know who follow the stack.
static bool is_left_out(const ZydisDecodedInstruction *zydis)
{
	return zydis->mnemonic == ZYDIS_MNEMONIC_POP || zydis->mnemonic == ZYDIS_MNEMONIC_LEAVE ||
	       zydis->mnemonic == ZYDIS_MNEMONIC_ENTER;
}

static uint16_t writes_by_zydis(const ZydisDecodedInstruction *zydis,
                                const ZydisDecodedOperand *operands)
{
	uint16_t written = 0;

	for (size_t i = 0; i < zydis->operand_count; i++) {
		const ZydisDecodedOperand *operand = &operands[i];
		if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(
		    ZYDIS_MACHINE_MODE_LONG_64, operand->reg.value);
		if (ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64)
			written |= 1u << ZydisRegisterGetId(whole);
	}
	return written;
}

static void check_one(struct counts *counts, const uint8_t *bytes, size_t size,
                      const ZydisDecodedInstruction *zydis, const ZydisDecodedOperand *operands)
{
	enum { SP = 4 };
	struct instruction own;

	counts->n++;
	if (!x86_instruction_decode(bytes, size, &own) || own.length != zydis->length) {
		counts->n_lengths++;
		show(counts, "another length", bytes, zydis->length);
		return;
	}
	const uint16_t may_write =
	    x86_instruction_may_write(&own) | x86_instruction_implicit(&own) | 1u << SP;
	if (!is_left_out(zydis) && writes_by_zydis(zydis, operands) & ~may_write) {
		counts->n_writes++;
		show(counts, "writes more", bytes, zydis->length);
	}
}

static void check_section(struct counts *counts, const uint8_t *bytes, size_t size)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction zydis;

	for (size_t at = 0; at < size; at += zydis.length) {
		while (at < size && ZYAN_FAILED(ZydisDecoderDecodeFull(
		                        &decoder, bytes + at, size - at, &zydis, operands)))
			at++; // data
		if (at < size)
			check_one(counts, bytes + at, size - at, &zydis, operands);
	}
}

static void check_file(const char *path)
{
	struct counts counts = {.file = path};
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	while ((section = elf_nextscn(elf, section))) {
		assert_non_null(gelf_getshdr(section, &header));
		if (header.sh_type != SHT_PROGBITS || !(header.sh_flags & SHF_EXECINSTR))
			continue;
		const Elf_Data *data = elf_rawdata(section, NULL);
		check_section(&counts, data->d_buf, data->d_size);
	}
	elf_end(elf);
	close(fd);
	print_message("# %s: %zu instructions, %zu with another length, %zu write more\n", path,
	              counts.n, counts.n_lengths, counts.n_writes);
	assert_true(counts.n > 100);
	assert_int_equal(counts.n_lengths, 0);
	assert_int_equal(counts.n_writes, 0);
}

static void test_libc(void **state)
{
	struct link_map *map;

	(void)state;
	void *libc = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
	assert_non_null(libc);
	assert_int_equal(dlinfo(libc, RTLD_DI_LINKMAP, &map), 0);
	check_file(map->l_name);
	dlclose(libc);
}

static void test_files(void **state)
{
	(void)state;
	for (int i = 0; i < n_files; i++)
		check_file(files[i]);
}

// What no compiler makes, and the code of the files has not: prefixes in odd order, XOP, byte
// registers beyond the fourth, exchanges, words of VIA's and AMD's.
static void test_rare(void **state)
{
	static const uint8_t cases[][ZYDIS_MAX_INSTRUCTION_LENGTH + 1] = {
	    {0x47, 0x47, 0xc9},
	    {0x49, 0x66, 0x66, 0x4b, 0x35, 0x57, 0x88, 0x90, 0xf6},
	    {0x46, 0x67, 0xbe, 0xbe, 0xd9, 0x67, 0xbe},
	    {0x8f, 0xe8, 0x78, 0xc2, 0xec, 0x0e},
	    {0x8f, 0x44, 0x24, 0x08},
	    {0xb4, 0x01},
	    {0xb7, 0x01},
	    {0x40, 0xb5, 0x01},
	    {0x91},
	    {0x41, 0x90},
	    {0x0f, 0x98, 0xdd},
	    {0x0f, 0x05},
	    {0x0f, 0x0e},
	    {0xf3, 0x0f, 0xa7, 0xc8},
	    {0x0f, 0xc0, 0xe5},
	};
	struct counts counts = {.file = "rare"};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++)
		check_section(&counts, cases[i], sizeof(cases[i]));
	assert_true(counts.n >= array_size(cases));
	assert_int_equal(counts.n_lengths + counts.n_writes, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_libc),
	    cmocka_unit_test(test_files),
	    cmocka_unit_test(test_rare),
	};

	files = argv + 1;
	n_files = argc - 1;
	elf_version(EV_CURRENT);
	if (ZYAN_FAILED(
	        ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

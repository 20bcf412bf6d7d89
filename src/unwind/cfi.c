// SPDX-License-Identifier: MIT
#include "cfi.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "debug_file.h"
#include "expression.h"
#include "memory.h"
#include "module.h"
#include "rule.h"

enum {
	MAX_OPS = 256,
	GENERAL_BYTES = 8192, // compilers seldom leave the stack pointer alone for this long
};

// --- Whether there is a .debug_frame

// True for .debug_frame; GNU tools once named a compressed one ".zdebug_frame".
static bool is_debug_frame(const char *name)
{
	return name && (strcmp(name, ".debug_frame") == 0 || strcmp(name, ".zdebug_frame") == 0);
}

static bool has_section(Elf *elf)
{
	GElf_Shdr header;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names) != 0)
		return false;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));)
		if (gelf_getshdr(section, &header) &&
		    is_debug_frame(elf_strptr(elf, names, header.sh_name)))
			return true;
	return false;
}

// Opens the file that libdwfl will take for the module's debug file.
static int open_debug_file(const struct module *module, Elf *elf, char **ret_path)
{
	GElf_Word crc = 0;
	const struct debug_file_wanted wanted = {
	    .places = module_debug_places(module),
	    .module_path = module->path,
	    .name = dwelf_elf_gnu_debuglink(elf, &crc),
	    .build_id = module->build_id,
	    .build_id_size = module->build_id_size,
	    .crc = crc,
	};

	return module->debug_fd >= 0 ? dup(module->debug_fd) : debug_file_open(&wanted, ret_path);
}

static bool debug_file_has_section(const struct module *module, Elf *module_elf)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = open_debug_file(module, module_elf, &path);
	Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	const bool has = has_section(elf);

	elf_end(elf);
	return has;
}

static bool look_for_it(struct module *module)
{
	Dwfl_Module *dwfl_module = module_dwfl(module);
	GElf_Addr bias;
	Elf *elf = dwfl_module ? dwfl_module_getelf(dwfl_module, &bias) : NULL;

	module_opens_files(module); // its debug file, as libdwfl will
	return elf && (has_section(elf) || debug_file_has_section(module, elf));
}

// True if it has. Does not look at other debug information, since libdw unpacks all sections of a
// file at once (80 ms for libc's). Call it in guarded work (module_guard).
static bool debug_frame_is_there(struct module *module)
{
	if (!module->looked_for_debug_frame) {
		module->looked_for_debug_frame = true;
		module->has_debug_frame = look_for_it(module);
	}
	return module->has_debug_frame;
}

// --- Rows

void rule_deinit(struct rule *rule)
{
	free((void *)rule->cfa_expression);
	for (size_t i = 0; i < rule->n_registers; i++)
		free((void *)rule->registers[i].expression);
	*rule = (struct rule){0};
}

// Finds the position that a branch leads to; libdw gives its offset from the next op, in bytes.
static bool branch_target(const Dwarf_Op *ops, size_t n, const Dwarf_Op *op, uint32_t *ret)
{
	// DW_OP_skip and DW_OP_bra take three bytes (DWARF 5, 2.5.1.5).
	const Dwarf_Word offset = op->offset + 3 + (Dwarf_Word)(int16_t)op->number;

	for (size_t i = 0; i < n; i++) {
		if (ops[i].offset == offset) {
			*ret = i;
			return true;
		}
	}
	*ret = n; // after the last op: the end
	return offset > ops[n - 1].offset;
}

// Returns a copy of the ops that the caller owns; NULL if they are not for us.
static struct expression *copy_ops(const Dwarf_Op *ops, size_t n)
{
	if (n == 0 || n > MAX_OPS)
		return NULL;
	struct expression *expression =
	    memory_alloc_zeroed(1, sizeof(*expression) + n * sizeof(expression->ops[0]));
	expression->count = n;
	for (size_t i = 0; i < n; i++) {
		expression->ops[i] = (struct expression_op){
		    .atom = ops[i].atom,
		    .number = ops[i].number,
		    .number2 = ops[i].number2,
		};
		if ((ops[i].atom == DW_OP_skip || ops[i].atom == DW_OP_bra) &&
		    !branch_target(ops, n, &ops[i], &expression->ops[i].target)) {
			free(expression);
			return NULL;
		}
	}
	return expression;
}

static bool fits_int32(Dwarf_Word value)
{
	return (int64_t)value == (int32_t)value;
}

// Reads the CFA: register + offset, or an expression.
static bool read_cfa(Dwarf_Frame *frame, struct rule *rule)
{
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_frame_cfa(frame, &ops, &n) != 0 || n == 0)
		return false;
	if (n == 1 && ops[0].atom >= DW_OP_breg0 &&
	    ops[0].atom < DW_OP_breg0 + ARCH_MAX_REGISTERS) {
		rule->cfa_register = ops[0].atom - DW_OP_breg0;
		rule->cfa_offset = ops[0].number;
		return true;
	}
	if (n == 1 && ops[0].atom == DW_OP_bregx && ops[0].number < ARCH_MAX_REGISTERS) {
		rule->cfa_register = ops[0].number;
		rule->cfa_offset = ops[0].number2;
		return true;
	}
	rule->cfa_expression = copy_ops(ops, n);
	return rule->cfa_expression != NULL;
}

// Reads ops that begin with DW_OP_call_frame_cfa: CFA + offset, or an expression on the CFA.
static bool read_cfa_relative(const Dwarf_Op *ops, size_t n, bool is_value,
                              struct register_rule *ret)
{
	const bool plain =
	    n == 1 || (n == 2 && ops[1].atom == DW_OP_plus_uconst && fits_int32(ops[1].number));

	if (plain) {
		ret->kind = is_value ? REGISTER_IS_CFA : REGISTER_AT_CFA;
		ret->offset = n == 1 ? 0 : (int32_t)ops[1].number;
		return true;
	}
	ret->kind = is_value ? REGISTER_IS_EXPRESSION : REGISTER_AT_EXPRESSION;
	ret->expression = copy_ops(ops + 1, n - 1);
	return ret->expression != NULL;
}

enum reading { READ_DEFAULT, READ_RULE, READ_FAILED };

// Reads one register's rule, as dwarf_frame_register(3) encodes it. No ops, and ops is NULL: same
// value; no ops otherwise: undefined; else ops that give the address where it is saved, or, with a
// trailing DW_OP_stack_value, its value.
static enum reading read_register(Dwarf_Frame *frame, int number, struct register_rule *ret)
{
	Dwarf_Op memory[3], *ops = memory;
	size_t n;

	*ret = (struct register_rule){.number = number};
	if (dwarf_frame_register(frame, number, memory, &ops, &n) != 0)
		return READ_FAILED;
	if (n == 0) {
		ret->kind = REGISTER_UNDEFINED;
		return ops ? READ_RULE : READ_DEFAULT;
	}
	if (ops[0].atom == DW_OP_regx && n == 1 && ops[0].number < ARCH_MAX_REGISTERS) {
		ret->kind = REGISTER_COPY;
		ret->offset = ops[0].number;
		return READ_RULE;
	}
	if (ops[0].atom >= DW_OP_reg0 && ops[0].atom < DW_OP_reg0 + ARCH_MAX_REGISTERS && n == 1) {
		ret->kind = REGISTER_COPY;
		ret->offset = ops[0].atom - DW_OP_reg0;
		return READ_RULE;
	}
	const bool is_value = ops[n - 1].atom == DW_OP_stack_value;
	if (is_value)
		n--;
	if (n == 0 || ops[0].atom != DW_OP_call_frame_cfa)
		return READ_FAILED;
	return read_cfa_relative(ops, n, is_value, ret) ? READ_RULE : READ_FAILED;
}

// Changes the rule for the last instructions of a function that raises exceptions
// (__builtin_eh_return): all registers are the handler's there. Tables still describe them as
// saved, except for the frame pointer, and what they lead to is the handler itself, not a return
// address.
static void leave_for_handler(const struct arch *arch, struct rule *rule)
{
	size_t kept = 0;

	for (size_t i = 0; i < rule->n_registers; i++) {
		if (rule->registers[i].number == arch->pc)
			rule->registers[kept++] = rule->registers[i];
		else
			free((void *)rule->registers[i].expression);
	}
	rule->n_registers = kept;
	rule->raises = false;
	rule->signal_frame = true;
}

static bool read_registers(const struct arch *arch, Dwarf_Frame *frame, struct rule *rule)
{
	uint32_t saved = 0, named = 0;

	for (unsigned int number = 0; number < arch->n_registers; number++) {
		struct register_rule one;
		switch (read_register(frame, number, &one)) {
		case READ_FAILED:
			return false;
		case READ_DEFAULT:
			continue;
		case READ_RULE:
			break;
		}
		if (one.kind == REGISTER_UNDEFINED) {
			// Registers that calls do not preserve are unknown anyhow. And libdw
			// 0.188's initial rules for x86-64 name register 0 where 3 (rbx) is meant,
			// which then counts as undefined until it is saved: all preserved registers
			// keep their value unless a rule says where they are.
			if (number == arch->pc)
				rule->kind = RULE_ROOT;
			continue;
		}
		rule->registers[rule->n_registers++] = one;
		saved |= (uint32_t)(one.kind == REGISTER_AT_CFA) << number;
		named |= 1u << number;
	}
	rule->raises = (saved & arch->raising) == arch->raising;
	if (rule->raises && !(named >> arch->fp & 1))
		leave_for_handler(arch, rule);
	return true;
}

static bool read_row(const struct arch *arch, Dwarf_CFI *cfi, Dwarf_Addr address, struct rule *ret)
{
	_cleanup_free_ Dwarf_Frame *frame = NULL; // dwarf_cfi_addrframe: freed with free()
	struct rule rule = {.kind = RULE_ROW};
	Dwarf_Addr start, end;
	bool signal_frame = false;

	if (!cfi || dwarf_cfi_addrframe(cfi, address, &frame) != 0)
		return false;
	if (dwarf_frame_info(frame, &start, &end, &signal_frame) < 0)
		return false;
	rule.signal_frame = signal_frame;
	rule.is_general = end - start >= GENERAL_BYTES;
	if (!read_cfa(frame, &rule) || !read_registers(arch, frame, &rule)) {
		rule_deinit(&rule);
		return false;
	}
	*ret = rule;
	return true;
}

bool cfi_find_rule(struct module *module, uint64_t address, struct rule *ret)
{
	Dwfl_Module *dwfl_module = module_dwfl(module);
	Dwarf_Addr bias = 0;

	if (!dwfl_module)
		return false;
	Dwarf_CFI *cfi = dwfl_module_eh_cfi(dwfl_module, &bias);
	if (read_row(ARCH_NATIVE, cfi, address - bias, ret))
		return true;
	if (!debug_frame_is_there(module))
		return false;
	cfi = dwfl_module_dwarf_cfi(dwfl_module, &bias);
	return read_row(ARCH_NATIVE, cfi, address - bias, ret);
}

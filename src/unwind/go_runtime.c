// SPDX-License-Identifier: MIT
#include "go_runtime.h"

#include <string.h>

#include "arch.h"
#include "go_switch.h"
#include "gopclntab.h"
#include "memory.h"
#include "module.h"
#include "rule.h"

enum {
	RBP = 6, // DWARF's number

	MAX_CODE_BYTES = 256, // of a function, that are looked at
	MAX_TLS = 1 << 20,
	MAX_CURG = 4096,
	MAX_NEAR = 512, // functions
};

// From runtime/asm_amd64.s, sys_linux_amd64.s and cgo/asm_amd64.s.
static const struct {
	const char *name;
	enum rule_kind call, leaf; // RULE_NONE: as the tables have it
	enum go_switch go_switch;
} functions[] = {
    // The program begins here.
    {"_rt0_amd64_linux", RULE_ROOT, RULE_ROOT, GO_UNCLEAR},
    {"_rt0_amd64", RULE_ROOT, RULE_ROOT, GO_UNCLEAR},
    // The new thread begins here.
    {"runtime.clone", RULE_ROOT, RULE_NONE, GO_UNCLEAR},
    // A goroutine begins here, as the tables say from Go 1.18 on.
    {"runtime.goexit", RULE_ROOT, RULE_ROOT, GO_UNCLEAR},
    // The goroutine has been put aside: the thread runs the scheduler, from here on up.
    {"runtime.mcall", RULE_ROOT, RULE_SWITCH, GO_MCALL},
    {"gogo", RULE_SWITCH, RULE_SWITCH, GO_GOGO},
    {"runtime.gogo", RULE_SWITCH, RULE_SWITCH, GO_GOGO},
    {"runtime.systemstack", RULE_SWITCH, RULE_SWITCH, GO_SYSTEMSTACK},
    {"runtime.morestack", RULE_SWITCH, RULE_SWITCH, GO_MORESTACK},
    {"runtime.asmcgocall", RULE_SWITCH, RULE_SWITCH, GO_ASMCGOCALL},
    {"runtime.cgocallback", RULE_SWITCH, RULE_SWITCH, GO_CGOCALLBACK},
    {"runtime.schedule", RULE_SWITCH, RULE_SWITCH, GO_SCHEDULE},
    // C code calls it, which may need its frame pointer.
    {"crosscall2", RULE_ROW, RULE_ROW, GO_UNCLEAR},
    // The top of the signal handlers' stack, but not of what they have interrupted.
    {"runtime.sigtramp", RULE_NONE, RULE_NONE, GO_UNCLEAR},
};

struct code {
	uint8_t bytes[MAX_CODE_BYTES];
	size_t size;
};

static struct code read_code(struct module *module, uint64_t address)
{
	struct code code;

	code.size = module_read_code(module, address, code.bytes, sizeof(code.bytes));
	return code;
}

static uint32_t u32_at(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

// Behind the first occurrence of an instruction's bytes, with at least `more` bytes following;
// NULL: there is none.
static const uint8_t *find_code(const struct code *code, const char *bytes, size_t n, size_t more)
{
	for (size_t at = 0; at + n + more <= code->size; at++)
		if (memcmp(code->bytes + at, bytes, n) == 0)
			return code->bytes + at + n;
	return NULL;
}

// Where systemstack(SB) has g from, which depends on how the program was linked.
static bool find_tls(const struct code *code, uint64_t entry, struct go_layout *ret)
{
	const uint8_t *g = find_code(code, "\x64\x48\x8b\x04\x25", 5, 4); // mov %fs:x, %rax

	if (!g)
		g = find_code(code, "\x48\xc7\xc1", 3, 4); // mov $x, %rcx; mov %fs:(%rcx), %rax
	if (g) {
		ret->tls = (int32_t)u32_at(g);
		return ret->tls < 0 && ret->tls > -MAX_TLS && ret->tls % 8 == 0;
	}
	g = find_code(code, "\x48\x8b\x0d", 3, 8); // mov x(%rip), %rcx; mov %fs:(%rcx), %rax
	if (!g || memcmp(g + 4, "\x64\x48\x8b\x01", 4) != 0)
		return false;
	ret->tls_at = entry + (uint64_t)(g + 4 - code->bytes) + (uint64_t)(int32_t)u32_at(g);
	return true;
}

// systemstack(SB) begins by comparing g with g.m.curg, whose offset depends on the version.
static struct go_layout find_layout(struct module *module, struct gopclntab *table)
{
	const struct go_layout none = {0};
	struct go_layout layout = none;
	uint64_t entry, other;

	if (!gopclntab_find_name(table, "runtime.systemstack", 0, SIZE_MAX, &entry))
		return none;
	const struct code code = read_code(module, entry);
	const uint8_t *m = find_code(&code, "\x48\x8b\x58\x30", 4, 0); // mov 0x30(%rax), %rbx
	const uint8_t *curg = find_code(&code, "\x48\x3b\x83", 3, 4);  // cmp x(%rbx), %rax
	if (!m || !curg || u32_at(curg) > MAX_CURG || u32_at(curg) % 8 != 0 ||
	    !find_tls(&code, entry, &layout))
		return none;
	layout.curg = (uint16_t)u32_at(curg);
	// Of the same assembly, if the program has it.
	layout.calls_back =
	    gopclntab_find_name(table, "runtime.cgocallback", entry, MAX_NEAR, &other);
	return layout;
}

// asmcgocall(SB), behind its call, takes back into %rdi the goroutine, or into %rsi the stack
// pointer as it was, if that was on the thread's stack already.
static void find_slot(struct module *module, uint64_t address, struct rule *rule)
{
	struct code code = read_code(module, address + 1);

	if (code.size > 16)
		code.size = 16;
	const uint8_t *g = find_code(&code, "\x48\x8b\x7c\x24", 4, 1);   // mov x(%rsp), %rdi
	const uint8_t *sp = find_code(&code, "\x48\x8b\x74\x24", 4, 1);  // mov x(%rsp), %rsi
	const bool is_zero = find_code(&code, "\x48\x8b\x34\x24", 4, 0); // mov (%rsp), %rsi

	if (g) {
		rule->go_slot = *g;
	} else if (sp || is_zero) {
		rule->go_switch = GO_SAME_STACK;
		rule->go_slot = sp ? *sp : 0;
	}
}

// How much of the thread's stack a leaf in asmcgocall(SB) may have taken: 64 bytes, until Go 1.21,
// and what aligns it. The way that begins on the thread's stack comes behind the other's return.
static uint8_t find_taken(struct module *module, uint64_t entry, uint64_t address)
{
	const struct code code = read_code(module, entry);
	const uint8_t *changed = find_code(&code, "\x48\x8b\x66\x38", 4, 0); // mov 0x38(%rsi), %rsp
	const uint8_t *end = code.bytes + code.size;
	const uint8_t *way_out = changed ? memchr(changed, 0xc3, (size_t)(end - changed)) : NULL;
	const bool is_between = way_out && address - entry >= (uint64_t)(changed - code.bytes) &&
	                        address - entry <= (uint64_t)(way_out - code.bytes);

	return is_between ? 64 + 15 : 0;
}

// Go's tables have no registers, but the frame pointer is kept first.
static void add_frame_pointer(struct module *module, uint64_t entry, struct rule *rule)
{
	const struct code code = read_code(module, entry);
	const bool keeps = code.size > 0 && code.bytes[0] == 0x55; // push %rbp

	if (keeps && rule->cfa_offset == 8)
		return; // not yet
	rule->registers[rule->n_registers++] = (struct register_rule){
	    .number = RBP,
	    .kind = keeps ? REGISTER_AT_CFA : REGISTER_UNDEFINED,
	    .offset = -16,
	};
}

// Others that call C code keep the stack pointer in a register that it preserves.
// In a leaf, up to that instruction, the table is right.
static bool find_saved_sp(struct module *module, uint64_t entry, uint64_t address, bool is_call,
                          uint8_t *ret)
{
	static const struct {
		const char *save, *restore;
		uint8_t number; // DWARF's
	} registers[] = {
	    {"\x49\x89\xe4", "\x4c\x89\xe4", 12}, // mov %rsp, %r12; mov %r12, %rsp
	    {"\x49\x89\xe5", "\x4c\x89\xec", 13},
	    {"\x48\x89\xe3", "\x48\x89\xdc", 3},
	};
	const struct code code = read_code(module, entry);

	for (size_t i = 0; i < array_size(registers); i++) {
		const uint8_t *saved = find_code(&code, registers[i].save, 3, 0);
		if (!saved || !find_code(&code, registers[i].restore, 3, 0))
			continue;
		*ret = registers[i].number;
		return is_call || address - entry >= (uint64_t)(saved - code.bytes);
	}
	return false;
}

// The linker marks the assembly's calling convention: runtime.mcall.abi0.
static bool has_name(const char *name, const char *wanted)
{
	const size_t length = strlen(wanted);

	return strncmp(name, wanted, length) == 0 &&
	       (name[length] == '\0' || strcmp(name + length, ".abi0") == 0);
}

// clone(SB): behind the system call the new thread goes another way than the one to the return, and
// from there on nobody is to be returned to.
static bool read_clone(struct module *module, struct gopclntab *table, uint64_t address,
                       struct rule *ret)
{
	uint64_t entry;

	if (!gopclntab_entry(table, address, &entry))
		return false;
	const struct code code = read_code(module, entry), rest = read_code(module, address);
	const uint8_t *syscall = find_code(&code, "\x0f\x05", 2, 0);
	const uint8_t *end = code.bytes + code.size;
	const uint8_t *way_out = syscall ? memchr(syscall, 0xc3, (size_t)(end - syscall)) : NULL;
	if (!way_out || address - entry <= (uint64_t)(way_out - code.bytes))
		return ARCH_NATIVE->clone_rule(rest.bytes, rest.size, ret);
	*ret = (struct rule){.kind = RULE_ROOT};
	return true;
}

// All of a signal handler's trampoline is at the same place on the stack.
static bool read_sigreturn(struct module *module, struct gopclntab *table, uint64_t address,
                           struct rule *ret)
{
	uint64_t entry;

	if (!gopclntab_entry(table, address, &entry))
		return false;
	const struct code code = read_code(module, entry);
	return ARCH_NATIVE->signal_rule(code.bytes, code.size, ret);
}

static bool make_rule(struct module *module, struct gopclntab *table, uint64_t address,
                      bool is_call, enum go_switch go_switch, struct rule *ret)
{
	uint64_t entry;

	if (!gopclntab_rule(table, address, ret) || !gopclntab_entry(table, address, &entry))
		return false;
	ret->go_switch = go_switch;
	switch (go_switch) {
	case GO_UNCLEAR:
	case GO_CGOCALLBACK:
		add_frame_pointer(module, entry, ret);
		return true;
	case GO_ASMCGOCALL:
		if (is_call)
			find_slot(module, address, ret);
		else
			ret->go_slot = find_taken(module, entry, address);
		return true;
	case GO_SAVED_SP:
		return find_saved_sp(module, entry, address, is_call, &ret->go_slot);
	default:
		return true;
	}
}

// A function of that table.
static bool read_known(struct module *module, struct gopclntab *table, uint64_t address,
                       bool is_call, size_t i, struct rule *ret)
{
	const enum rule_kind kind = is_call ? functions[i].call : functions[i].leaf;

	if (kind == RULE_NONE)
		return false;
	if (kind == RULE_ROOT ||
	    !make_rule(module, table, address, is_call, functions[i].go_switch, ret))
		*ret = (struct rule){.go_switch = GO_UNCLEAR};
	ret->kind = kind;
	ret->go = find_layout(module, table);
	return true;
}

// Others whose stack pointer the table does not follow. The runtime's own walk ends there.
static bool read_other(struct module *module, struct gopclntab *table, uint64_t address,
                       bool is_call, struct rule *ret)
{
	struct rule rule;

	if (make_rule(module, table, address, is_call, GO_SAVED_SP, &rule))
		*ret = rule;
	else if (is_call)
		*ret = (struct rule){.go_switch = GO_UNCLEAR};
	else
		return false;
	ret->kind = RULE_SWITCH;
	ret->go = find_layout(module, table);
	return true;
}

// Functions that a signal's handler makes the interrupted code call, in the midst of it
// (runtime/signal_amd64.go, pushCall).
static bool is_injected(const char *name)
{
	return has_name(name, "runtime.asyncPreempt") || has_name(name, "runtime.sigpanic");
}

static bool read_injected(struct module *module, struct gopclntab *table, uint64_t address,
                          struct rule *ret)
{
	if (!make_rule(module, table, address, false, GO_UNCLEAR, ret))
		return false;
	ret->signal_frame = true;
	return true;
}

bool go_runtime_rule(struct module *module, uint64_t address, bool is_call, struct rule *ret)
{
	struct gopclntab *table = module_gopclntab(module);
	const char *name = table ? gopclntab_name(table, address) : NULL;
	if (!name)
		return false;
	if (!is_call && has_name(name, "runtime.clone"))
		return read_clone(module, table, address, ret);
	if (!is_call && strncmp(name, "runtime.sigreturn", strlen("runtime.sigreturn")) == 0)
		return read_sigreturn(module, table, address, ret);
	for (size_t i = 0; i < array_size(functions); i++)
		if (has_name(name, functions[i].name))
			return read_known(module, table, address, is_call, i, ret);
	if (is_injected(name))
		return read_injected(module, table, address, ret);
	const unsigned int flags = gopclntab_flags(table, address);
	if (flags & GO_TOP_FRAME) {
		*ret = (struct rule){.kind = RULE_ROOT, .go = find_layout(module, table)};
		return true;
	}
	return flags & GO_WRITES_SP && read_other(module, table, address, is_call, ret);
}

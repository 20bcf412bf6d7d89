// SPDX-License-Identifier: MIT
#include "go_runtime.h"

#include <string.h>

#include "arch.h"
#include "go_code.h"
#include "gopclntab.h"
#include "memory.h"
#include "module.h"
#include "rule.h"
#include "text.h"

enum { MAX_NEAR = 512 }; // functions

// From runtime/asm_*.s, sys_linux_*.s and cgo/asm_*.s.
static const struct {
	const char *name;
	enum rule_kind call, leaf; // RULE_NONE: as the tables have it
	enum go_switch go_switch;
} functions[] = {
    // The new thread begins here.
    {"runtime.clone", RULE_ROOT, RULE_NONE, GO_UNCLEAR},
    // A goroutine begins here, as the tables say from Go 1.18 on.
    {"runtime.goexit", RULE_ROOT, RULE_ROOT, GO_UNCLEAR},
    {"runtime.mcall", RULE_LANGUAGE, RULE_LANGUAGE, GO_MCALL},
    {"gogo", RULE_LANGUAGE, RULE_LANGUAGE, GO_GOGO},
    {"runtime.gogo", RULE_LANGUAGE, RULE_LANGUAGE, GO_GOGO},
    {"runtime.systemstack", RULE_LANGUAGE, RULE_LANGUAGE, GO_SYSTEMSTACK},
    {"runtime.morestack", RULE_LANGUAGE, RULE_LANGUAGE, GO_MORESTACK},
    {"runtime.asmcgocall", RULE_LANGUAGE, RULE_LANGUAGE, GO_ASMCGOCALL},
    {"runtime.cgocallback", RULE_LANGUAGE, RULE_LANGUAGE, GO_CGOCALLBACK},
    {"runtime.schedule", RULE_LANGUAGE, RULE_LANGUAGE, GO_SCHEDULE},
    // C code calls it, and may need its frame pointer.
    {"crosscall2", RULE_ROW, RULE_ROW, GO_UNCLEAR},
    // The top of the signal handlers' stack, but not of what they interrupted.
    {"runtime.sigtramp", RULE_NONE, RULE_NONE, GO_UNCLEAR},
};

_Static_assert(sizeof(struct go_rule) <= RULE_WORDS * sizeof(uint64_t), "in a rule's words");

static void set_words(struct rule *rule, const struct go_rule *words)
{
	memcpy(rule->words, words, sizeof(*words));
}

static struct go_code read_code(struct module *module, uint64_t address)
{
	struct go_code code;

	code.size = module_read_code(module, address, code.bytes, sizeof(code.bytes));
	return code;
}

static struct go_layout find_layout(struct module *module, struct gopclntab *table)
{
	const struct go_layout none = {0};
	struct go_layout layout = none;
	uint64_t entry, other;

	if (!gopclntab_find_name(table, "runtime.systemstack", 0, SIZE_MAX, &entry))
		return none;
	const struct go_code code = read_code(module, entry);
	if (!go_code_read_layout(&code, entry, &layout))
		return none;
	// In the same assembly, if the program has it.
	layout.calls_back =
	    gopclntab_find_name(table, "runtime.cgocallback", entry, MAX_NEAR, &other);
	return layout;
}

// Finds the slot from which asmcgocall(SB), after its call, takes back the goroutine, or the stack
// pointer.
static void find_slot(struct module *module, uint64_t address, struct go_rule *words)
{
	const struct go_code code = read_code(module, address + 1);

	if (go_code_find_kept(&code, &words->slot) == GO_KEPT_SP)
		words->go_switch = GO_SAME_STACK;
}

// Compares names without the linker's mark of the assembly's calling convention:
// runtime.mcall.abi0.
static bool has_name(const char *name, const char *wanted)
{
	const size_t length = strlen(wanted);

	return strncmp(name, wanted, length) == 0 &&
	       (name[length] == '\0' || strcmp(name + length, ".abi0") == 0);
}

// Reads clone(SB): after the system call the new thread takes another way than the one to the
// return, and from there on has nobody to return to.
static bool read_clone(struct module *module, struct gopclntab *table, uint64_t address,
                       struct rule *ret)
{
	uint64_t entry;

	if (!gopclntab_entry(table, address, &entry))
		return false;
	const struct go_code code = read_code(module, entry), rest = read_code(module, address);
	if (!go_code_is_new_thread(&code, address - entry))
		return ARCH_NATIVE->clone_rule(rest.bytes, rest.size, ret);
	*ret = (struct rule){.kind = RULE_ROOT};
	return true;
}

// Reads a signal handler's trampoline: all of it is at the same place on the stack.
static bool read_sigreturn(struct module *module, struct gopclntab *table, uint64_t address,
                           struct rule *ret)
{
	uint64_t entry;

	if (!gopclntab_entry(table, address, &entry))
		return false;
	const struct go_code code = read_code(module, entry);
	return ARCH_NATIVE->signal_rule(code.bytes, code.size, ret);
}

static bool make_rule(struct module *module, struct gopclntab *table, uint64_t address,
                      bool is_call, struct go_rule *words, struct rule *ret)
{
	uint64_t entry;

	if (!gopclntab_rule(table, address, ret) || !gopclntab_entry(table, address, &entry))
		return false;
	const struct go_code code = read_code(module, entry);
	switch (words->go_switch) {
	case GO_UNCLEAR:
	case GO_CGOCALLBACK:
		go_code_add_frame_pointer(&code, ret);
		return true;
	case GO_ASMCGOCALL:
		if (is_call)
			find_slot(module, address, words);
		else
			words->slot = go_code_taken(&code, address - entry);
		return true;
	case GO_SAVED_SP:
		return go_code_find_saved_sp(&code, address - entry, is_call, &words->slot);
	default:
		return true;
	}
}

// Reads a function of that table.
static bool read_known(struct module *module, struct gopclntab *table, uint64_t address,
                       bool is_call, size_t i, struct rule *ret)
{
	const enum rule_kind kind = is_call ? functions[i].call : functions[i].leaf;
	struct go_rule words = {.go_switch = functions[i].go_switch};

	if (kind == RULE_NONE)
		return false;
	if (kind == RULE_ROOT || !make_rule(module, table, address, is_call, &words, ret)) {
		*ret = (struct rule){0};
		words = (struct go_rule){.go_switch = GO_UNCLEAR};
	}
	ret->kind = kind;
	words.layout = find_layout(module, table);
	set_words(ret, &words);
	return true;
}

// Reads other functions whose stack pointer the table does not follow. The runtime's own walk ends
// there.
static bool read_other(struct module *module, struct gopclntab *table, uint64_t address,
                       bool is_call, struct rule *ret)
{
	struct go_rule words = {.go_switch = GO_SAVED_SP};
	struct rule rule;

	if (make_rule(module, table, address, is_call, &words, &rule)) {
		*ret = rule;
	} else if (is_call) {
		*ret = (struct rule){0};
		words = (struct go_rule){.go_switch = GO_UNCLEAR};
	} else {
		return false;
	}
	ret->kind = RULE_LANGUAGE;
	words.layout = find_layout(module, table);
	set_words(ret, &words);
	return true;
}

// True for functions that a signal handler makes the interrupted code call, in the middle of its
// work (runtime/signal_*.go, pushCall).
static bool is_injected(const char *name)
{
	return has_name(name, "runtime.asyncPreempt") || has_name(name, "runtime.sigpanic");
}

static bool read_injected(struct module *module, struct gopclntab *table, uint64_t address,
                          struct rule *ret)
{
	struct go_rule words = {.go_switch = GO_UNCLEAR};

	if (!make_rule(module, table, address, false, &words, ret))
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
	if (!is_call && text_begins_with(name, "runtime.sigreturn"))
		return read_sigreturn(module, table, address, ret);
	for (size_t i = 0; i < array_size(functions); i++)
		if (has_name(name, functions[i].name))
			return read_known(module, table, address, is_call, i, ret);
	if (is_injected(name))
		return read_injected(module, table, address, ret);
	const unsigned int flags = gopclntab_flags(table, address);
	if (go_code_is_start(name) || flags & GO_TOP_FRAME) {
		const struct go_rule words = {.layout = find_layout(module, table)};
		*ret = (struct rule){.kind = RULE_ROOT};
		set_words(ret, &words);
		return true;
	}
	return flags & GO_WRITES_SP && read_other(module, table, address, is_call, ret);
}

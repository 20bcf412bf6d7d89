#include "go_runtime.h"

#include <string.h>

#include "gopclntab.h"
#include "memory.h"
#include "module.h"
#include "rule.h"

// From runtime/asm_amd64.s and sys_linux_amd64.s.
static const struct {
	const char *name;
	enum rule_kind kind;
} functions[] = {
    // The goroutine has been put aside: the thread runs the scheduler, from here on up.
    {"runtime.mcall", RULE_ROOT},
    // The new thread begins here.
    {"runtime.clone", RULE_ROOT},
    // The goroutine waits below for what is called on the thread's stack (or, for
    // cgocallback, the C code for what is called on the goroutine's).
    {"runtime.systemstack", RULE_SWITCH},
    {"runtime.morestack", RULE_SWITCH},
    {"runtime.asmcgocall", RULE_SWITCH},
    {"runtime.cgocallback", RULE_SWITCH},
};

bool go_runtime_rule(struct module *module, uint64_t address, struct rule *ret)
{
	struct gopclntab *table = module_gopclntab(module);
	const char *name = table ? gopclntab_name(table, address) : NULL;
	if (!name)
		return false;
	if (gopclntab_is_root(table, address)) {
		*ret = (struct rule){.kind = RULE_ROOT};
		return true;
	}
	for (size_t i = 0; i < array_size(functions); i++) {
		const size_t length = strlen(functions[i].name);
		// The linker marks the assembly's calling convention: runtime.mcall.abi0.
		if (strncmp(name, functions[i].name, length) != 0 ||
		    (name[length] != '\0' && strcmp(name + length, ".abi0") != 0))
			continue;
		*ret = (struct rule){.kind = functions[i].kind};
		return true;
	}
	return false;
}

// SPDX-License-Identifier: MIT
// php: unwinds the code that PHP's JIT makes (opcache.jit), for a virtual machine as GCC compiles
// it.
//
// Such code has no tables, unless opcache.jit_debug asks for them. It runs in the frame of
// execute_ex, which keeps the next operation in a register, and leaves by a jump to that
// operation's handler, also in execute_ex. So the caller is execute_ex's, by its table's row where
// it does the same (Zend/zend_vm_execute.skl, ZEND_VM_KIND_HYBRID;
// ext/opcache/jit/zend_jit_x86.dasc).
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_code;
struct module;
struct rule;

// Returns the address in the file where execute_ex jumps to a handler; 0: the module has none. Call
// it in guarded work (module_guard).
uint64_t php_find_dispatch(struct module *module);

// Finds the rule (RULE_CODE) for an address of JIT code in a process that has PHP's virtual machine
// in module `php`. False if the code does not jump to a handler. The caller owns *ret.
bool php_rule(struct module *php, const struct arch_code *code, uint64_t address, struct rule *ret);

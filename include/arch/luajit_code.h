// SPDX-License-Identifier: MIT
// luajit_code: the places in LuaJIT's virtual machine (VM) that tell how it keeps its frames, known
// by their instructions: with 64-bit objects (LJ_GC64).
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_code;
struct rule;

// The register that is the VM's own, by DWARF's number.
extern const uint8_t luajit_code_dispatch;

// What a VM's code tells.
struct luajit_layout {
	int32_t state; // where the running Lua state is noted, from the VM's register
	int8_t frame;  // and where that notes the VM's frame
	uint64_t vm;   // an address in the VM where its own tables hold; 0: nothing is known
};

// True if the instruction that ends at `end` is that of the exit handler which goes back to the
// VM's frame.
bool luajit_code_is_exit(const struct arch_code *code, uint64_t end, struct luajit_layout *ret);

// In the VM, which has one table row for all of its code: the rule for an address where it takes
// its frame, or enters a trace. False: it is no such, and the row holds.
bool luajit_code_refine(const struct arch_code *code, uint64_t address, const struct rule *row,
                        struct rule *ret);

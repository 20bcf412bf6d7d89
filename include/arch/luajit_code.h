// SPDX-License-Identifier: MIT
// luajit_code: finds the places in LuaJIT's virtual machine (VM) that tell how it keeps its frames,
// by their instructions: with 64-bit objects (LJ_GC64).
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_code;
struct rule;

// The VM's own register, by DWARF's number.
extern const uint8_t luajit_code_dispatch;

// What a VM's code shows.
struct luajit_layout {
	int32_t state; // where the running Lua state is noted, from the VM's register
	int8_t frame;  // where that state notes the VM's frame
	uint64_t vm;   // an address in the VM, where its own tables are right; 0: nothing is known
};

// True if the instruction that ends at `end` is the one in the exit handler that goes back to the
// VM's frame.
bool luajit_code_is_exit(const struct arch_code *code, uint64_t end, struct luajit_layout *ret);

// Refines the VM's only table row, which is for all of its code: makes the rule for an address
// where it makes its frame, or enters a trace. False if the address is not there, so that the row
// is right.
bool luajit_code_refine(const struct arch_code *code, uint64_t address, const struct rule *row,
                        struct rule *ret);

// luajit: code that LuaJIT makes (traces), for x86-64 with 64-bit objects (LJ_GC64).
//
// A trace runs in the C frame of the virtual machine (VM) that entered it, and takes more of the
// stack; by how much only the compiler knew. It is left for the VM's exit handler, which sets the
// stack pointer to where the Lua state notes that the frame is. So is a walk: what the state notes
// is read while the thread stands still (luajit_read), and the frames that the VM entered earlier
// follow by the chain that it keeps in them (lj_frame.h, CFRAME_*).
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_code;
struct resident;
struct rule;
struct snapshot;

enum { LUAJIT_DISPATCH = 14 }; // DWARF's number of the register that is the VM's own: r14

// What a VM's code tells.
struct luajit_layout {
	int32_t state; // where the running Lua state is noted, from the VM's register
	int8_t frame;  // and where that notes the VM's frame
	uint64_t vm;   // an address in the VM where its own tables hold; 0: nothing is known
};

// Of a thread, as a stack has shown it.
struct luajit_thread {
	uint64_t dispatch; // the VM's register; 0: not known
	struct luajit_layout layout;
};

// True if the instruction that ends at `end` is that of the exit handler which goes back to the
// VM's frame.
bool luajit_is_exit(const struct arch_code *code, uint64_t end, struct luajit_layout *ret);

// In the VM, which has one table row for all of its code: the rule for an address where it takes
// its frame, or enters a trace. False: it is no such, and the row holds.
bool luajit_refine(const struct arch_code *code, uint64_t address, const struct rule *row,
                   struct rule *ret);

// Reads where the innermost frame of the VM is, as resident_read does; 0: it is not known. Right if
// the thread stands still.
uint64_t luajit_read(int tid, struct resident *resident, const struct luajit_thread *thread);

// The VM's frame in which the code runs whose stack pointer is `sp`; 0: it is not known.
uint64_t luajit_find_frame(const struct snapshot *snapshot, uint64_t dispatch, uint64_t sp);

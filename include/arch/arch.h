// SPDX-License-Identifier: MIT
// arch: what depends on the processor. Each has a folder in src/arch, which defines arch_native, a
// struct of functions and facts, and the functions of this folder's other headers.
//
// Registers carry DWARF's numbers (for x86-64: psABI, figure 3.36).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARCH_MAX_REGISTERS = 17, ARCH_MAX_DIRECT_CALL_BYTES = 8 };

// The values of a thread's registers in one frame; bit i of `known`: value[i] is right.
struct registers {
	uint64_t value[ARCH_MAX_REGISTERS];
	uint32_t known;
};

static inline bool registers_know(const struct registers *registers, unsigned int number)
{
	return number < ARCH_MAX_REGISTERS && (registers->known >> number & 1);
}

static inline void registers_set(struct registers *registers, unsigned int number, uint64_t value)
{
	registers->value[number] = value;
	registers->known |= 1u << number;
}

// Code that can be read.
struct arch_code {
	// Reads up to `size` bytes at the address; returns how many there are.
	size_t (*read)(void *context, uint64_t address, void *buffer, size_t size);
	// True if both addresses are in one function, as far as is known.
	bool (*is_together)(void *context, uint64_t a, uint64_t b);
	// The n-th place (from 0 on) at which the function to be followed may begin; 0: no more are
	// known.
	uint64_t (*find_start)(void *context, unsigned int n);
	bool changes_stacks; // it may be BEAM's (beam_code.h)
	void *context;
};

// A range of code with its unwinding rules (an FDE): a function, or a part that was split off.
struct arch_function {
	uint64_t start, end;
	bool is_entry; // calls lead to its start: the CFA is right above the return address there
};

// Functions that can be read.
struct arch_functions {
	size_t (*read)(void *context, uint64_t address, void *buffer, size_t size);
	// The range that holds the address; false: none.
	bool (*find)(void *context, uint64_t address, struct arch_function *ret);
	// SP - CFA at the address, where the rules tell it; false: they count from elsewhere.
	bool (*find_sp)(void *context, uint64_t address, int64_t *ret);
	void *context;
};

// Distances within a function's frame that are constants of its code at a place.
struct arch_frame {
	int64_t sp_to_cfa; // CFA - SP
	bool has_fp;       // the frame pointer has been set up
	int64_t fp_to_cfa; // CFA - frame pointer
};

struct rule;

struct arch {
	const char *name;
	uint16_t elf_machine; // EM_*
	uint8_t elf_class;    // ELFCLASS*
	uint32_t
	    elf_unwind_section; // SHT_*: the type that .eh_frame may have instead of SHT_PROGBITS
	unsigned int n_registers;
	unsigned int pc, sp, fp; // their numbers
	uint32_t preserved;      // bit set: kept by a called function (psABI)
	uint8_t syscall_args[6]; // registers of a system call's arguments, kept in the call
	uint32_t raising;        // bit set: saved by functions that raise exceptions, and no others
	unsigned int red_zone_bytes; // below SP, that signal handlers leave alone (psABI 3.2.2)

	// True if the code at `code` (`size` bytes, from a frame's pc on) is a signal trampoline.
	// Then *ret is the rule for the interrupted frame.
	bool (*signal_rule)(const uint8_t *code, size_t size, struct rule *ret);

	// The rule for an address without CFI in a section of that name (such as .plt), `offset`
	// bytes into it, with the code from there on; false: none is known.
	bool (*section_rule)(const char *section, uint64_t offset, const uint8_t *code, size_t size,
	                     struct rule *ret);

	// The rule for a pc (no return address) without CFI that `code` (`size` bytes, from there
	// on) tells: at a ret, or about a system call that returns in a new thread as well. False:
	// it is no such.
	bool (*clone_rule)(const uint8_t *code, size_t size, struct rule *ret);

	// The rule for a pc (no return address) that the code around it tells, whatever tables say:
	// in the place of a return or of an indirect jump (x86_thunk_rule), and at the system call
	// of a signal trampoline.
	bool (*pc_rule)(const struct arch_code *code, uint64_t address, struct rule *ret);

	// The rule where the return address lies above `pushed_bytes` of the function's own, and
	// where nothing more is known.
	void (*popping_rule)(int64_t pushed_bytes, struct rule *ret);

	// The rule for code without CFI, from the code itself (x86_code_rule); the registers that
	// the function left alone that was to return to the address (x86_code_left_alone); whether
	// the bytes end in a call, of at most max_call_bytes.
	bool (*code_rule)(const struct arch_code *code, uint64_t address, bool is_return,
	                  struct rule *ret);
	bool (*refine)(const struct arch_code *code, uint64_t address, const struct rule *general,
	               struct rule *ret); // x86_code_refine
	uint32_t (*left_alone)(const struct arch_code *code, uint64_t return_address);
	bool (*is_after_call)(const uint8_t *bytes, size_t size);
	size_t max_call_bytes;
	// Where the direct call leads that is these bytes, direct_call_bytes of them, and ends at
	// `next`; 0: it is none.
	uint64_t (*direct_call_target)(const uint8_t *bytes, uint64_t next);
	size_t direct_call_bytes;

	// The function's slot in the global offset table, where the code at the address is an entry
	// of the procedure linkage table, which jumps through that; 0: it is none.
	uint64_t (*plt_slot)(const uint8_t *code, size_t size, uint64_t address);

	// The distances at an address in a function (x86_frame_find).
	bool (*find_frame)(const struct arch_functions *functions, uint64_t address, bool is_call,
	                   struct arch_frame *ret);

	// True if the code at `code` is where a stack begins, without a call before it
	// (makecontext(3)).
	bool (*is_stack_start)(const uint8_t *code, size_t size);

	// True if the code at `code` ends a function that has restored the frame pointer already.
	// GCC's tables of functions that realign their frames do not tell so.
	bool (*has_restored_fp)(const uint8_t *code, size_t size);

	// The rule for code without CFI that keeps the frame pointer.
	void (*frame_pointer_rule)(struct rule *ret);

	// libgcc's struct _Unwind_Context begins with as many pointers to where registers are
	// saved.
	unsigned int unwinder_registers;

	// glibc's struct pthread: where its own address stands (header.self of tcbhead_t), and its
	// tid, behind the header and a list's two pointers (nptl/descr.h, since 2.4).
	uint32_t pthread_self, pthread_tid;
	uint64_t user_end; // programs' memory lies below

	// Where in memory the kernel keeps the interrupted stack pointer, given the address of a
	// struct ucontext, and where uc_stack lies in it.
	size_t ucontext_stack_offset, ucontext_sp_offset;
};

// The one that this profiler is built for.
extern const struct arch arch_native;
#define ARCH_NATIVE (&arch_native)

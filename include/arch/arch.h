// SPDX-License-Identifier: MIT
// arch: everything that depends on the processor. Each processor has a folder in src/arch, which
// defines arch_native, a struct of functions and facts, and the functions of this folder's other
// headers.
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

struct rule;

// Code that can be read.
struct arch_code {
	// Reads up to `size` bytes at the address; returns how many there are.
	size_t (*read)(void *context, uint64_t address, void *buffer, size_t size);
	// True if both addresses, of a call and behind it, are in one function, as far as is known.
	bool (*is_together)(void *context, uint64_t a, uint64_t b);
	// Returns the n-th place (from 0 on) at which the function to be followed may begin; 0: no
	// more are known.
	uint64_t (*find_start)(void *context, unsigned int n);
	// Is told of each instruction that is looked at; NULL: nobody is.
	void (*note)(void *context, uint64_t address, const void *bytes, size_t size);
	// What languages know of such code (language.h); each may be NULL.
	// True if its rule is known by the instructions that end at `end`, with a jump that leads
	// nowhere. keeps_fp: the frame pointer is still what it was at the first address.
	bool (*rule_at_jump)(const struct arch_code *code, uint64_t end, bool keeps_fp,
	                     struct rule *ret);
	// True if the code leaves there as a ret would, with the stack pointer as at its entry.
	bool (*is_tail_call)(const struct arch_code *code, uint64_t address);
	// True if the call at that address never returns.
	bool (*is_last_call)(const struct arch_code *code, uint64_t address);
	bool changes_stacks; // it may change between the thread's stack and its own (beam_code.h)
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
	// Finds the range that holds the address. False if there is none.
	bool (*find)(void *context, uint64_t address, struct arch_function *ret);
	// Finds SP - CFA at the address. False if the rules count from something else.
	bool (*find_sp)(void *context, uint64_t address, int64_t *ret);
	void *context;
};

// Distances within a function's frame that are constant at a place in its code.
struct arch_frame {
	int64_t sp_to_cfa; // CFA - SP
	bool has_fp;       // the frame pointer has been set up
	int64_t fp_to_cfa; // CFA - frame pointer
};

struct arch {
	const char *name;
	uint16_t elf_machine; // EM_*
	uint8_t elf_class;    // ELFCLASS*
	uint32_t
	    elf_unwind_section; // SHT_*: the type that .eh_frame may have instead of SHT_PROGBITS
	unsigned int n_registers;
	unsigned int pc, sp, fp;     // their numbers
	uint32_t preserved;          // bit set: kept by a called function (psABI)
	uint8_t syscall_args[6];     // registers of a system call's arguments, which the call keeps
	uint32_t raising;            // bit set: only functions that raise exceptions save it
	unsigned int red_zone_bytes; // below SP, that signal handlers leave alone (psABI 3.2.2)

	// True if the code at `code` (`size` bytes, from a frame's pc on) is a signal trampoline.
	// Then *ret is the rule for the interrupted frame.
	bool (*signal_rule)(const uint8_t *code, size_t size, struct rule *ret);

	// Makes the rule for an address without CFI in a section of that name (such as .plt),
	// `offset` bytes into it, with the code from there on. False if none is known.
	bool (*section_rule)(const char *section, uint64_t offset, const uint8_t *code, size_t size,
	                     struct rule *ret);

	// Makes the rule for a pc (not a return address) without CFI from `code` (`size` bytes,
	// from there on): at a ret, or near a system call that also returns in a new thread. False
	// otherwise.
	bool (*clone_rule)(const uint8_t *code, size_t size, struct rule *ret);

	// Makes the rule for a pc (not a return address) from the code around it, whatever tables
	// say: in a retpoline (x86_thunk_rule), and at the system call of a signal trampoline.
	bool (*pc_rule)(const struct arch_code *code, uint64_t address, struct rule *ret);

	// Makes the rule for a function that has pushed `pushed_bytes` below its return address,
	// and of which nothing more is known.
	void (*popping_rule)(int64_t pushed_bytes, struct rule *ret);

	// Makes the rule for code without CFI from the code itself (x86_code_rule). The next ones:
	// the registers that the function left alone which was to return to the address
	// (x86_code_left_alone); whether some way leads from a function's start to the instruction
	// that holds the address (x86_code_leads_to), or may (x86_code_may_lead_to); whether the
	// bytes end in a call of at most max_call_bytes.
	bool (*code_rule)(const struct arch_code *code, uint64_t address, bool is_return,
	                  struct rule *ret);
	bool (*refine)(const struct arch_code *code, uint64_t address, const struct rule *general,
	               struct rule *ret); // x86_code_refine
	uint32_t (*left_alone)(const struct arch_code *code, uint64_t return_address);
	bool (*leads_to)(const struct arch_code *code, uint64_t start, uint64_t address);
	bool (*may_lead_to)(const struct arch_code *code, uint64_t start, uint64_t address,
	                    bool is_other);
	bool (*may_return)(const struct arch_code *code, uint64_t start); // x86_code_may_return
	bool (*is_after_call)(const uint8_t *bytes, size_t size);
	size_t max_call_bytes;
	// True if the code is nothing but what lies between functions; if a jump in it leads to its
	// first byte.
	bool (*is_padding)(const uint8_t *code, size_t size);
	bool (*jumps_back)(const uint8_t *code, size_t size);
	// Returns where a direct call leads: `bytes` are direct_call_bytes long, and end at `next`;
	// 0: they are not a direct call.
	uint64_t (*direct_call_target)(const uint8_t *bytes, uint64_t next);
	size_t direct_call_bytes;

	// Returns the function's slot in the global offset table, if the code at the address is an
	// entry of the procedure linkage table, which jumps through that slot; 0: it is not.
	uint64_t (*plt_slot)(const uint8_t *code, size_t size, uint64_t address);

	// Finds the distances at an address in a function (x86_frame_find).
	bool (*find_frame)(const struct arch_functions *functions, uint64_t address, bool is_call,
	                   struct arch_frame *ret);

	// True if the code at `code` is where a stack begins, without a call before it
	// (makecontext(3)).
	bool (*is_stack_start)(const uint8_t *code, size_t size);

	// True if the code at `code` ends a function that has already restored the frame pointer.
	// GCC's tables of functions that realign their frames do not say so.
	bool (*has_restored_fp)(const uint8_t *code, size_t size);

	// Makes the rule for code without CFI that keeps the frame pointer.
	void (*frame_pointer_rule)(struct rule *ret);

	// libgcc's struct _Unwind_Context begins with as many pointers to where registers are
	// saved.
	unsigned int unwinder_registers;

	// Offsets in glibc's struct pthread: of its own address (header.self of tcbhead_t), and of
	// its tid, after the header and a list's two pointers (nptl/descr.h, since 2.4).
	uint32_t pthread_self, pthread_tid;
	uint64_t user_end; // programs' memory lies below

	// Where in memory the kernel keeps the interrupted stack pointer, given the address of a
	// struct ucontext, and where uc_stack lies in it.
	size_t ucontext_stack_offset, ucontext_sp_offset;
};

// The architecture that this profiler is built for.
extern const struct arch arch_native;
#define ARCH_NATIVE (&arch_native)

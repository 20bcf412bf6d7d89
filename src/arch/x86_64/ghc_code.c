// SPDX-License-Identifier: MIT
#include "ghc_code.h"

#include <string.h>

#include "arch.h"
#include "x86_instruction.h"

enum {
	MAX_INSTRUCTIONS = 512, // of one search
	MAX_BRANCHES = 64,      // that are still to be followed
	MAX_JUMPS = 64,         // that are followed
	MAX_TAG = 8,            // of a pointer to a closure, added to one of its words
	MAX_DISTANCE = 1 << 16, // of the stack pointer, there and back

	// GHC's registers, as the machine numbers them: those of its StgRegTable (MachRegs.h).
	STACK = 5,  // Sp
	NODE = 3,   // R1
	TABLE = 13, // BaseReg
};

// jmp *%rax (into Haskell code); StgReturn: mov %rbx, %rax; add $RESERVED_C_STACK_BYTES, %rsp;
// mov (%rsp), %rbx; mov 8(%rsp), %rbp.
static const uint8_t stg_return[] = {0xff, 0xe0, 0x48, 0x89, 0xd8, 0x48, 0x81,
                                     0xc4, 0x00, 0x40, 0x00, 0x00, 0x48, 0x8b,
                                     0x1c, 0x24, 0x48, 0x8b, 0x6c, 0x24, 0x08};
enum { JUMP_BYTES = 2 };

const uint8_t *ghc_code_find_return(const uint8_t *text, size_t size)
{
	const uint8_t *found = memmem(text, size, stg_return, sizeof(stg_return));

	return found ? found + JUMP_BYTES : NULL;
}

struct way {
	uint64_t address;
	int32_t sp; // how far the stack pointer has moved
};

struct search {
	const struct arch_code *code;
	uint64_t stg_return;
	struct way branches[MAX_BRANCHES];
	size_t n_branches, n_instructions;
	uint64_t seen[MAX_JUMPS]; // where jumps led
	size_t n_seen;
};

enum effect { GO_ON, JUMP, BRANCH, LEAVE, DEAD_END };

// Leaves by an indirect jump: to the continuation on the stack, into a closure, or through the
// table of the runtime's functions. Other such jumps stay within a function.
static enum effect leave(const struct instruction *i)
{
	const bool is_tagged = i->displacement >= -MAX_TAG && i->displacement <= MAX_TAG;

	return i->plain_base && ((i->rm == STACK && i->displacement == 0) ||
	                         (i->rm == NODE && is_tagged) || i->rm == TABLE)
	           ? LEAVE
	           : DEAD_END;
}

// Follows an instruction that names the stack pointer as its result.
static enum effect move_sp(const struct instruction *i, struct way *way)
{
	const uint8_t op = i->opcode;

	if ((op == 0x83 || op == 0x81) && i->mod == 3 && i->wide &&
	    (i->reg_field == 0 || i->reg_field == 5)) // add, sub
		way->sp += (int32_t)(i->reg_field == 0 ? i->immediate : -i->immediate);
	else if (op == 0x8d && i->wide && i->plain_base && i->rm == MACHINE_SP) // lea
		way->sp += i->displacement;
	else
		return DEAD_END;
	return way->sp >= -MAX_DISTANCE && way->sp <= MAX_DISTANCE ? GO_ON : DEAD_END;
}

static enum effect step(const struct instruction *i, struct way *way)
{
	const uint8_t op = i->opcode;

	if (i->map == MAP_0F && !i->is_vector && op >= 0x80 && op <= 0x8f)
		return BRANCH;
	if (i->map == MAP_0F && !i->is_vector && op == 0x0b)
		return DEAD_END; // ud2
	if (i->map == MAP_ONE && !i->is_vector) {
		if (op >= 0x70 && op <= 0x7f)
			return BRANCH;
		if (op == 0xe9 || op == 0xeb)
			return JUMP;
		if (op == 0xff && i->reg_field == 4)
			return leave(i);
		if (op == 0xe8 || (op == 0xff && i->reg_field == 2))
			return GO_ON; // a call of C code
		if (op >= 0x50 && op <= 0x57)
			way->sp -= 8;
		if (op >= 0x58 && op <= 0x5f)
			way->sp += 8;
		if (op == 0xc2 || op == 0xc3 || op == 0xc9 || op == 0xcc || op == 0xf4 ||
		    op == 0x5c || op == 0x8f || (op == 0xff && i->reg_field > 4))
			return DEAD_END; // not Haskell
	}
	return x86_instruction_may_write(i) >> MACHINE_SP & 1 ? move_sp(i, way) : GO_ON;
}

// Takes a jump. False if the search has been there.
static bool jump(struct search *search, struct way *way, int64_t distance)
{
	way->address += (uint64_t)distance;
	for (size_t i = 0; i < search->n_seen; i++)
		if (search->seen[i] == way->address)
			return false;
	if (search->n_seen == MAX_JUMPS)
		return false;
	search->seen[search->n_seen++] = way->address;
	return true;
}

// Follows one way. True if it leads out of this piece of Haskell code.
static bool follow(struct search *search, struct way *way)
{
	uint8_t bytes[X86_MAX_INSTRUCTION_BYTES];
	struct instruction i;

	while (way->address != search->stg_return && search->n_instructions++ < MAX_INSTRUCTIONS) {
		const size_t n =
		    search->code->read(search->code->context, way->address, bytes, sizeof(bytes));
		if (!x86_instruction_decode(bytes, n, &i))
			return false;
		way->address += i.length;
		switch (step(&i, way)) {
		case LEAVE:
			return true;
		case DEAD_END:
			return false;
		case JUMP:
			if (!jump(search, way, i.immediate))
				return way->address == search->stg_return;
			break;
		case BRANCH:
			if (search->n_branches < MAX_BRANCHES) {
				search->branches[search->n_branches] = *way;
				search->branches[search->n_branches++].address += i.immediate;
			}
			break;
		default:
			break;
		}
	}
	return way->address == search->stg_return;
}

bool ghc_code_way_out(const struct arch_code *code, uint64_t stg_return_at, uint64_t address,
                      int64_t *ret)
{
	struct search search = {.code = code, .stg_return = stg_return_at};

	search.branches[search.n_branches++] = (struct way){.address = address};
	while (search.n_branches > 0) {
		struct way way = search.branches[--search.n_branches];
		if (!follow(&search, &way))
			continue;
		*ret = way.sp;
		return true;
	}
	return false;
}

// SPDX-License-Identifier: MIT
#include "x86_code.h"

#include <string.h>

#include "arch.h"
#include "memory.h"
#include "rule.h"
#include "x86_instruction.h"
#include "x86_rule.h"
#include "x86_thunk.h"
#include "x86_registers.h"
#include "x86_way.h"

enum {
	MAX_INSTRUCTIONS = 4096, // of one search
	MAX_BRANCHES = 256,      // that are still to be followed
	MAX_STARTS = 4,          // places where the function may begin
	VISITED_SIZE = 8192,     // a power of two, more than MAX_INSTRUCTIONS
	CHUNK_BYTES = 512,
	CALL_BYTES = 5, // of a direct one
};

static const uint64_t NO_GOAL = UINT64_MAX;

static bool is_call(const struct instruction *i)
{
	return i->map == MAP_ONE && !i->is_vector &&
	       (i->opcode == 0xe8 || (i->opcode == 0xff && i->reg_field == 2));
}

bool x86_code_is_after_call(const uint8_t *bytes, size_t size)
{
	struct instruction i;

	for (size_t n = 2; n <= X86_CODE_MAX_CALL_BYTES && n <= size; n++)
		if (x86_instruction_decode(bytes + size - n, n, &i) && i.length == n && is_call(&i))
			return true;
	return false;
}

struct search {
	const struct arch_code *code;
	unsigned int how;       // WAY_*
	uint64_t goal;          // stop there, and not at a ret; NO_GOAL: at a ret
	bool by_shape;          // stop where a language's code is known by its shape instead
	struct rule shape;      // the rule for that shape
	x86_code_jump *is_last; // stop at such a jump instead; NULL: none
	size_t n_instructions;
	struct way branches[MAX_BRANCHES];
	size_t n_branches;
	uint64_t visited[VISITED_SIZE]; // addresses + 1; 0: empty
	uint8_t chunk[CHUNK_BYTES];
	uint64_t chunk_start;
	size_t chunk_size;
};

static bool visit(struct search *search, uint64_t address)
{
	size_t i = (address * 0x9e3779b97f4a7c15u >> 40) & (VISITED_SIZE - 1);

	if (++search->n_instructions > MAX_INSTRUCTIONS)
		return false;
	for (; search->visited[i]; i = (i + 1) & (VISITED_SIZE - 1))
		if (search->visited[i] == address + 1)
			return false;
	search->visited[i] = address + 1;
	return true;
}

static bool read_instruction(struct search *search, uint64_t address, struct instruction *ret)
{
	uint64_t into = address - search->chunk_start;

	if (into >= search->chunk_size || search->chunk_size - into < X86_MAX_INSTRUCTION_BYTES) {
		search->chunk_start = address;
		search->chunk_size = search->code->read(search->code->context, address,
		                                        search->chunk, sizeof(search->chunk));
		into = 0;
	}
	if (search->chunk_size <= into ||
	    !x86_instruction_decode(search->chunk + into, search->chunk_size - into, ret))
		return false;
	if (search->code->note)
		search->code->note(search->code->context, address, search->chunk + into,
		                   ret->length);
	x86_thunk_replace(search->code, address, ret);
	return true;
}

// Moves on from the instruction; way->address is already after it.
static enum effect advance(struct search *search, const struct instruction *i, struct way *way)
{
	const enum effect effect = x86_way_step(i, search->how, way);

	if (effect == JUMP) {
		way->address += i->immediate;
	} else if (effect == BRANCH && search->n_branches < MAX_BRANCHES &&
	           !(search->goal == NO_GOAL && x86_way_is_failure(i, way))) {
		search->branches[search->n_branches] = *way;
		search->branches[search->n_branches++].address += i->immediate;
	}
	if (effect == BRANCH)
		x86_way_pass_branch(i, way);
	return effect;
}

// True if a language's code is known by the way's end.
static bool has_shape(struct search *search, const struct way *way)
{
	const struct arch_code *code = search->code;

	return code->rule_at_jump &&
	       code->rule_at_jump(code, way->address, !(way->written >> MACHINE_BP & 1),
	                          &search->shape);
}

// True if another function may begin behind a call, which never returns then.
static bool may_end(const struct search *search, uint64_t call, uint64_t next)
{
	const struct arch_code *code = search->code;

	return (code->is_together && !code->is_together(code->context, call, next)) ||
	       (code->is_last_call && code->is_last_call(code, call));
}

// Follows one way to its end. True if it leads to the goal, or to a ret, with *ret_popped the bytes
// that the ret takes off the stack besides the return address.
static bool follow(struct search *search, struct way *way, int64_t *ret_popped)
{
	const struct arch_code *code = search->code;
	struct instruction i;

	while (way->address != search->goal && visit(search, way->address) &&
	       read_instruction(search, way->address, &i)) {
		const uint64_t here = way->address;
		if (code->is_tail_call && code->is_tail_call(code, here)) {
			*ret_popped = 0;
			return search->goal == NO_GOAL && !search->by_shape && !way->is_away;
		}
		way->address += i.length;
		if (is_call(&i) && way->address != search->goal &&
		    may_end(search, here, way->address))
			return false;
		switch (advance(search, &i, way)) {
		case RETURN:
			*ret_popped = (uint16_t)i.immediate;
			return search->goal == NO_GOAL && !search->by_shape && !search->is_last;
		case DEAD_END:
			if (search->is_last)
				return search->is_last(&i);
			if (search->by_shape && has_shape(search, way))
				return true;
			if (!search->by_shape || !(x86_instruction_may_write(&i) >> MACHINE_SP & 1))
				return false;
			break; // no shape goes by the stack pointer
		default:
			break;
		}
	}
	return way->address == search->goal;
}

// Returns what the instruction before the address compares SP with, if it has that length.
static uint8_t compared_before(const struct arch_code *code, uint64_t address)
{
	uint8_t bytes[3];
	struct instruction i;

	return code->read(code->context, address - sizeof(bytes), bytes, sizeof(bytes)) ==
	                   sizeof(bytes) &&
	               x86_instruction_decode(bytes, sizeof(bytes), &i) && i.length == sizeof(bytes)
	           ? x86_way_compared(&i)
	           : 0;
}

static void begin(struct search *search, uint64_t address)
{
	search->n_instructions = 0;
	memset(search->visited, 0, sizeof(search->visited));
	search->branches[0] = (struct way){
	    .address = address,
	    .compared = compared_before(search->code, address),
	};
	search->n_branches = 1;
}

// True if both or neither count from a copy in the register, and the same one.
static bool agree_on_copy(const struct way *a, const struct way *b, int number)
{
	const uint16_t bit = (uint16_t)(1u << number);

	return !((a->copies ^ b->copies) & bit) &&
	       (!(a->copies & bit) || a->copied_at[number] == b->copied_at[number]);
}

static bool agree_when_lost(const struct way *a, const struct way *b)
{
	return agree_on_copy(a, b, MACHINE_BP) && agree_on_copy(a, b, MACHINE_R10) &&
	       a->has_arguments == b->has_arguments && a->arguments_slot == b->arguments_slot &&
	       a->arguments_at == b->arguments_at && a->has_frame == b->has_frame;
}

static bool agree(const struct search *search, const struct way *a, const struct way *b)
{
	// Only a way in knows that it was the return address.
	return a->base == b->base && a->at == b->at && a->slot == b->slot &&
	       a->slot_by == b->slot_by && a->number == b->number && a->is_lost == b->is_lost &&
	       (search->goal == NO_GOAL ||
	        (a->took_return == b->took_return && a->returns == b->returns &&
	         (!a->is_lost || agree_when_lost(a, b))));
}

// All ways must lead to the same result: one that does not went astray after a call that never
// returns.
static bool find_way(struct search *search, uint64_t address, struct way *ret, int64_t *ret_popped)
{
	bool found = false;
	int64_t popped = 0;

	begin(search, address);
	while (search->n_branches > 0) {
		struct way way = search->branches[--search->n_branches];
		if (!follow(search, &way, &popped))
			continue;
		if (found && !agree(search, &way, ret))
			return false;
		*ret = way;
		*ret_popped = popped;
		found = true;
		if (!(search->how & WAY_FOLLOWS_CALLS))
			break; // there is nothing to go astray
	}
	return found;
}

// Tries the surest way first: one to a ret without calls.
static bool find_surest_way(struct search *search, uint64_t address, struct way *ret,
                            int64_t *ret_popped)
{
	if (find_way(search, address, ret, ret_popped))
		return true;
	search->how |= WAY_FOLLOWS_CALLS;
	return find_way(search, address, ret, ret_popped);
}

// Finds the way in from where the function begins, if no way out is found.
static bool find_way_in(struct search *search, uint64_t start, uint64_t address, struct way *ret)
{
	int64_t popped = 0;

	search->how |= WAY_FOLLOWS_CALLS;
	search->goal = address;
	return find_way(search, start, ret, &popped) && ret->base == BASE_SP &&
	       (!ret->is_lost || ret->copies >> MACHINE_BP & 1 || ret->copies >> MACHINE_R10 & 1 ||
	        ret->has_arguments);
}

static bool is_sane(const struct way *way)
{
	return way->at >= -(1 << 30) && way->at <= 1 << 30;
}

// True if some way leads to where a language's code is known by its shape; the rule is then in
// search->shape.
static bool find_shape(struct search *search, uint64_t address)
{
	int64_t popped;

	search->how |= WAY_FOLLOWS_CALLS;
	search->goal = NO_GOAL;
	search->by_shape = true;
	search->how |= WAY_KEEPS_SP;
	begin(search, address);
	while (search->n_branches > 0) {
		struct way way = search->branches[--search->n_branches];
		if (follow(search, &way, &popped))
			return true;
	}
	return false;
}

// Finds a way to a jump that returns. Such code has no calls on that way: they would not keep the
// register.
static bool find_jump(struct search *search, uint64_t address, struct way *ret)
{
	int64_t popped = 0;

	search->goal = NO_GOAL;
	search->by_shape = false;
	search->how = WAY_TAKES_JUMPS;
	return find_way(search, address, ret, &popped) && is_sane(ret);
}

bool x86_code_way_to_jump(const struct arch_code *code, uint64_t address, x86_code_jump *is_last,
                          int64_t *ret)
{
	_cleanup_free_ struct search *search = memory_alloc_zeroed(1, sizeof(*search));
	struct way way = {0};
	int64_t popped = 0;

	search->code = code;
	search->goal = NO_GOAL;
	search->how = WAY_FOLLOWS_CALLS;
	search->is_last = is_last;
	if (!find_way(search, address, &way, &popped) || way.base != BASE_SP || way.is_lost)
		return false;
	*ret = way.at;
	return true;
}

bool x86_code_rule(const struct arch_code *code, uint64_t address, bool is_return, struct rule *ret)
{
	_cleanup_free_ struct search *search = memory_alloc_zeroed(1, sizeof(*search));
	struct way way = {0};
	int64_t popped = 0;

	search->code = code;
	search->goal = NO_GOAL;
	if (code->changes_stacks)
		search->how |= WAY_CHANGES_STACKS;
	// After a function's last call, which never returns, another function may begin.
	const bool goes_on = !is_return || code->is_together(code->context, address - 1, address);
	if (goes_on && find_surest_way(search, address, &way, &popped)) {
		if (!is_sane(&way))
			return false;
		x86_rule_of_way_out(&way, popped, ret);
		ret->is_elsewhere = code->changes_stacks && way.base != BASE_SP;
		return true;
	}
	for (unsigned int n = 0; n < MAX_STARTS; n++) {
		const uint64_t start = code->find_start(code->context, n);
		if (start == 0)
			break;
		if (find_way_in(search, start, address, &way) && is_sane(&way) &&
		    way.at <= (x86_rule_holds_return(&way) ? 8 : 0)) {
			x86_rule_of_way_in(&way, ret);
			return true;
		}
	}
	if (goes_on && find_shape(search, address)) {
		*ret = search->shape;
		return true;
	}
	if (!goes_on || code->changes_stacks || !find_jump(search, address, &way))
		return false;
	x86_rule_of_way_out(&way, 0, ret);
	return true;
}

bool x86_code_refine(const struct arch_code *code, uint64_t address, const struct rule *general,
                     struct rule *ret)
{
	_cleanup_free_ struct search *search = memory_alloc_zeroed(1, sizeof(*search));
	struct way way = {0};
	int64_t popped = 0;

	search->code = code;
	search->goal = NO_GOAL;
	if (general->cfa_register != RSP || general->cfa_expression)
		return false;
	if (find_way(search, address, &way, &popped) && way.base == BASE_SP && is_sane(&way) &&
	    way.at + 8 < general->cfa_offset) {
		x86_rule_of_way_out(&way, popped, ret);
		return true;
	}
	if (!find_shape(search, address) || search->shape.kind != RULE_LANGUAGE)
		return false;
	*ret = search->shape;
	return true;
}

// Follows one way to its end, and notes what is written on it. False if not all of it is known.
static bool cover(struct search *search, struct way *way, uint16_t *written)
{
	struct instruction i;

	while (visit(search, way->address)) {
		if (!read_instruction(search, way->address, &i) ||
		    search->n_branches == MAX_BRANCHES)
			return false;
		way->address += i.length;
		*written |= x86_instruction_may_write(&i) | x86_instruction_implicit(&i);
		switch (advance(search, &i, way)) {
		case RETURN:
			return true;
		case DEAD_END:
			return false;
		default:
			*written |= way->written;
		}
	}
	return search->n_instructions <= MAX_INSTRUCTIONS;
}

uint32_t x86_code_left_alone(const struct arch_code *code, uint64_t return_address)
{
	_cleanup_free_ struct search *search = memory_alloc_zeroed(1, sizeof(*search));
	struct instruction call;
	uint16_t written = 0;
	uint32_t alone = 0;

	search->code = code;
	search->goal = NO_GOAL;
	if (!read_instruction(search, return_address - CALL_BYTES, &call) ||
	    call.length != CALL_BYTES || call.opcode != 0xe8 || !is_call(&call))
		return 0;
	search->branches[0] = (struct way){.address = return_address + call.immediate};
	search->n_branches = 1;
	while (search->n_branches > 0) {
		struct way way = search->branches[--search->n_branches];
		if (!cover(search, &way, &written))
			return 0;
	}
	for (uint8_t i = 0; i < array_size(x86_dwarf_number); i++)
		alone |= (uint32_t) !(written >> i & 1) << x86_dwarf_number[i];
	return alone;
}

// How far a function's ways have been followed.
struct extent {
	uint64_t end;       // no instruction was seen beyond
	bool returns;       // a way ends with a ret
	bool may_go_on;     // a way goes on if a call returns
	bool jumps;         // a way goes on where a register or a table says
	bool goes_anywhere; // a way goes on where it could not be followed
};

// True for instructions that end the program: ud2, ud1, ud0, int3 and hlt.
static bool is_trap(const struct instruction *i)
{
	if (i->is_vector)
		return false;
	return i->map == MAP_ONE ? i->opcode == 0xcc || i->opcode == 0xf4
	                         : i->map == MAP_0F && (i->opcode == 0x0b || i->opcode == 0xb9 ||
	                                                i->opcode == 0xff);
}

// True for those that do not go on with the next one, or not in this code: far jumps, calls and
// returns, iret, sysret and sysexit.
static bool is_far(const struct instruction *i)
{
	if (i->is_vector || (i->map != MAP_ONE && i->map != MAP_0F))
		return false;
	if (i->map == MAP_0F)
		return i->opcode == 0x07 || i->opcode == 0x35;
	return i->opcode == 0xca || i->opcode == 0xcb || i->opcode == 0xcf ||
	       (i->opcode == 0xff && (i->reg_field == 3 || i->reg_field == 5));
}

// Notes where the way goes on behind an instruction that x86_way_step does not follow. True if it
// is with the next one: many do to the stack pointer what is not known.
static bool goes_on(const struct instruction *i, struct extent *extent)
{
	const bool is_indirect =
	    i->map == MAP_ONE && !i->is_vector && i->opcode == 0xff && i->reg_field == 4;

	// One that is by the pc goes through the linker's table.
	extent->jumps |= is_indirect && !i->by_pc;
	extent->goes_anywhere |= (is_indirect && i->by_pc) || is_far(i);
	return !is_indirect && !is_far(i) && !is_trap(i);
}

// Follows one way to its end, or to the instruction that holds the address: then it returns true.
static bool passes(struct search *search, struct way *way, uint64_t address, struct extent *extent)
{
	struct instruction i;

	while (visit(search, way->address)) {
		if (!read_instruction(search, way->address, &i)) {
			extent->goes_anywhere = true;
			return false;
		}
		if (address - way->address < i.length)
			return true;
		const uint64_t here = way->address;
		// Where it leads does not depend on the stack pointer.
		*way = (struct way){.address = here + i.length};
		if (extent->end < way->address)
			extent->end = way->address;
		if (is_call(&i) && may_end(search, here, way->address)) {
			extent->may_go_on = true;
			return false;
		}
		extent->goes_anywhere |= search->n_branches == MAX_BRANCHES;
		const enum effect effect = advance(search, &i, way);
		extent->returns |= effect == RETURN;
		if (effect == RETURN || (effect == DEAD_END && !goes_on(&i, extent)))
			return false;
	}
	extent->goes_anywhere |= search->n_instructions > MAX_INSTRUCTIONS;
	return false;
}

static bool leads_to(const struct arch_code *code, uint64_t start, uint64_t address,
                     struct extent *extent)
{
	_cleanup_free_ struct search *search = memory_alloc_zeroed(1, sizeof(*search));

	search->code = code;
	search->goal = address;
	search->how = WAY_FOLLOWS_CALLS;
	begin(search, start);
	while (search->n_branches > 0) {
		struct way way = search->branches[--search->n_branches];
		if (passes(search, &way, address, extent))
			return true;
	}
	return false;
}

bool x86_code_leads_to(const struct arch_code *code, uint64_t start, uint64_t address)
{
	struct extent unused = {0};

	return leads_to(code, start, address, &unused);
}

bool x86_code_may_lead_to(const struct arch_code *code, uint64_t start, uint64_t address,
                          bool is_other)
{
	struct extent extent = {0};

	if (leads_to(code, start, address, &extent) || extent.goes_anywhere)
		return true;
	return is_other
	           ? extent.jumps
	           : (extent.may_go_on || extent.jumps) && address >= start && address < extent.end;
}

bool x86_code_may_return(const struct arch_code *code, uint64_t start)
{
	struct extent extent = {0};

	leads_to(code, start, NO_GOAL, &extent);
	return extent.returns || extent.jumps || extent.goes_anywhere;
}

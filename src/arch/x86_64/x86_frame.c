// SPDX-License-Identifier: MIT
#include "x86_frame.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "x86_instruction.h"

enum {
	MAX_PARTS = 4,
	MAX_PART_BYTES = 1 << 18,
	MAX_INSTRUCTIONS = 1 << 15, // decoded in one search
	MAX_DISTANCE = 1 << 30,     // between SP and CFA
	AT_ENTRY = -8,              // SP - CFA, where a function begins and where it returns
};

// What is known where an instruction begins. Distances are from the CFA.
struct place {
	int32_t sp;
	int32_t fp;     // if has_fp
	uint8_t length; // of the instruction (but see probe_loop); 0: not reached
	bool has_fp;
	bool waits; // is still to be followed
};

// A range of code.
struct part {
	uint64_t start;
	size_t size;
	uint8_t *bytes;
	struct place *places; // for each byte
};

struct search {
	const struct arch_functions *functions;
	struct part parts[MAX_PARTS];
	size_t n_parts;
	uint64_t *waiting; // addresses of places
	size_t n_waiting, waiting_capacity;
	size_t n_instructions;
	bool has_transfer, has_two; // calls, and jumps to unknown places
	struct place transfer;      // what is the same for all of them
	bool needs_one;             // a jump leads to unknown places
};

static void search_deinit(struct search *search)
{
	for (size_t i = 0; i < search->n_parts; i++) {
		free(search->parts[i].bytes);
		free(search->parts[i].places);
	}
	free(search->waiting);
}

static struct part *find_part(struct search *search, uint64_t address)
{
	for (size_t i = 0; i < search->n_parts; i++)
		if (address - search->parts[i].start < search->parts[i].size)
			return &search->parts[i];
	return NULL;
}

static bool add_part(struct search *search, const struct arch_function *function)
{
	const struct arch_functions *functions = search->functions;
	const size_t size = function->end - function->start;

	if (search->n_parts == MAX_PARTS || function->end <= function->start ||
	    size > MAX_PART_BYTES)
		return false;
	struct part *part = &search->parts[search->n_parts++];
	*part = (struct part){
	    .start = function->start,
	    .size = size,
	    .bytes = memory_alloc(size),
	    .places = memory_alloc_zeroed(size, sizeof(struct place)),
	};
	return functions->read(functions->context, part->start, part->bytes, size) == size;
}

static bool decode(struct search *search, const struct part *part, uint64_t address,
                   struct instruction *ret)
{
	const size_t at = address - part->start;

	return ++search->n_instructions <= MAX_INSTRUCTIONS &&
	       x86_instruction_decode(part->bytes + at, part->size - at, ret);
}

// GCC's -fstack-clash-protection makes a large frame page by page, in a loop that ends when SP is
// what a lea before it has put into %r11: the two count as one instruction. Returns the bytes of
// the loop after the lea at the address; 0: there is no loop.
static size_t probe_loop(const struct part *part, uint64_t address, const struct instruction *lea)
{
	// sub $PAGE_BYTES, %rsp; orq $0, (%rsp); cmp %r11, %rsp; jne to the sub
	static const uint8_t loop[] = {0x48, 0x81, 0xec, 0x00, 0x10, 0x00, 0x00, 0x48, 0x83,
	                               0x0c, 0x24, 0x00, 0x4c, 0x39, 0xdc, 0x75, 0xef};
	enum { PAGE_BYTES = 0x1000 };
	const size_t at = address - part->start + lea->length;

	if (lea->map != MAP_ONE || lea->is_vector || lea->opcode != 0x8d || !lea->wide ||
	    lea->reg != MACHINE_R11 || !lea->plain_base || lea->rm != MACHINE_SP ||
	    lea->displacement >= 0 || lea->displacement % PAGE_BYTES != 0)
		return 0;
	return part->size - at >= sizeof(loop) && memcmp(part->bytes + at, loop, sizeof(loop)) == 0
	           ? sizeof(loop)
	           : 0;
}

static void wait_for(struct search *search, uint64_t address, struct place *place)
{
	if (!place->waits)
		*array_push(search->waiting, search->n_waiting, search->waiting_capacity) = address;
	place->waits = true;
}

// Merges two ways to one place. Nothing leads on after a call that never returns: if the rules tell
// the place's own distance, a way with another distance does not exist.
static bool merge(struct search *search, uint64_t address, struct place *place,
                  const struct place *come)
{
	const struct arch_functions *functions = search->functions;
	int64_t told;

	if (place->sp != come->sp)
		return functions->find_sp(functions->context, address, &told) && told == place->sp;
	if (place->has_fp && (!come->has_fp || come->fp != place->fp)) {
		place->has_fp = false;
		wait_for(search, address, place);
	}
	return true;
}

// Notes that a way leads to the address. False if nothing can be said of the function.
static bool reach(struct search *search, uint64_t address, const struct place *come)
{
	struct part *part = find_part(search, address);
	struct instruction i;

	if (!part)
		return false;
	struct place *place = &part->places[address - part->start];
	if (place->length)
		return merge(search, address, place, come);
	if (!decode(search, part, address, &i))
		return false;
	*place = *come;
	place->length = i.length + probe_loop(part, address, &i);
	place->waits = false;
	wait_for(search, address, place);
	return true;
}

// Follows a jump by its distance. One that leaves the code is a call in place of a return, which
// has SP as at the entry; or it goes to a function that never returns; or to a part that was split
// off.
static bool jump(struct search *search, uint64_t address, const struct place *come)
{
	const struct arch_functions *functions = search->functions;
	struct arch_function function;

	if (find_part(search, address))
		return reach(search, address, come);
	if (come->sp == AT_ENTRY)
		return true;
	if (!functions->find(functions->context, address, &function))
		return false;
	if (function.is_entry && function.start == address)
		return true;
	return add_part(search, &function) && reach(search, address, come);
}

static void note_transfer(struct search *search, const struct place *place)
{
	struct place *all = &search->transfer;

	if (!search->has_transfer)
		*all = *place;
	search->has_two |= all->sp != place->sp;
	all->has_fp &= place->has_fp && all->fp == place->fp;
	search->has_transfer = true;
}

enum effect { GO_ON, CALL, JUMP, JUMP_SOMEWHERE, BRANCH, LEAVE, UNKNOWN };

static enum effect pop(struct place *place, uint8_t number)
{
	place->sp += 8;
	place->has_fp &= number != MACHINE_BP;
	return number == MACHINE_SP ? UNKNOWN : GO_ON;
}

static enum effect push(struct place *place)
{
	place->sp -= 8;
	return GO_ON;
}

static enum effect take_fp(struct place *place, int64_t offset)
{
	place->sp = (int32_t)(place->fp + offset);
	return place->has_fp ? GO_ON : UNKNOWN;
}

static enum effect indirect(const struct instruction *i, struct place *place)
{
	switch (i->reg_field) {
	case 0:
	case 1: // inc, dec
		return i->mod == 3 && i->rm == MACHINE_SP ? UNKNOWN : GO_ON;
	case 2:
		return CALL;
	case 4:
		return JUMP_SOMEWHERE;
	case 6:
		return push(place);
	default:
		return UNKNOWN; // far calls and jumps
	}
}

// Handles instructions of one opcode byte that change the stack pointer or the way without naming
// either. -1: it is not one.
static int step_special(const struct instruction *i, struct place *place)
{
	const uint8_t op = i->opcode;

	if (op >= 0x50 && op <= 0x57)
		return push(place);
	if (op >= 0x58 && op <= 0x5f)
		return pop(place, i->low);
	if ((op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3))
		return BRANCH;
	switch (op) {
	case 0x68:
	case 0x6a:
	case 0x9c: // push
		return push(place);
	case 0x8f: // pop to memory; with another field, a prefix (XOP)
		return i->reg_field == 0 && i->mod != 3 ? pop(place, 0) : UNKNOWN;
	case 0x9d: // popf
		return pop(place, 0);
	case 0xc9: { // leave
		const enum effect effect = take_fp(place, 0);
		return effect == GO_ON ? pop(place, MACHINE_BP) : effect;
	}
	case 0xe8:
		return CALL;
	case 0xe9:
	case 0xeb:
		return JUMP;
	case 0xff:
		return i->reg_field < 2 ? -1 : (int)indirect(i, place);
	case 0xc2:
	case 0xc3:
	case 0xca:
	case 0xcb:
	case 0xcf:
	case 0xf4: // ret, far ret, iret, hlt
		return LEAVE;
	case 0xc8: // enter
		return UNKNOWN;
	default:
		return -1;
	}
}

// Does the same for two opcode bytes.
static int step_special_0f(const struct instruction *i, struct place *place)
{
	switch (i->opcode) {
	case 0x0b:
	case 0xb9:
	case 0xff: // ud2, ud1, ud0
	case 0x07:
	case 0x35: // sysret, sysexit
		return LEAVE;
	case 0x34: // sysenter
		return UNKNOWN;
	case 0xa0:
	case 0xa8:
		return push(place);
	case 0xa1:
	case 0xa9:
		return pop(place, 0);
	default:
		return i->opcode >= 0x80 && i->opcode <= 0x8f ? BRANCH : -1;
	}
}

// Handles instructions that name the stack pointer as what they write.
static enum effect write_sp(const struct instruction *i, struct place *place)
{
	const bool on_sp = i->mod == 3 && i->rm == MACHINE_SP;

	if (i->map != MAP_ONE || i->is_vector || !i->wide)
		return UNKNOWN;
	if (on_sp && (i->opcode == 0x83 || i->opcode == 0x81) &&
	    (i->reg_field == 0 || i->reg_field == 5)) { // add, sub
		place->sp += (int32_t)(i->reg_field == 0 ? i->immediate : -i->immediate);
		return GO_ON;
	}
	if (i->opcode == 0x8d && i->reg == MACHINE_SP && i->plain_base) { // lea
		if (i->rm == MACHINE_BP)
			return take_fp(place, i->displacement);
		place->sp += i->displacement;
		return i->rm == MACHINE_SP ? GO_ON : UNKNOWN;
	}
	if ((i->opcode == 0x89 && on_sp && i->reg == MACHINE_BP) ||
	    (i->opcode == 0x8b && i->mod == 3 && i->reg == MACHINE_SP && i->rm == MACHINE_BP))
		return take_fp(place, 0); // mov %rbp, %rsp
	return UNKNOWN;
}

// Handles writes to the frame pointer: unless it is made of the stack pointer, it is not a frame
// pointer.
static void write_fp(const struct instruction *i, struct place *place)
{
	int32_t offset = 0;

	place->has_fp = x86_instruction_sets_to_sp(i, MACHINE_BP, &offset);
	place->fp = place->sp + offset;
}

// Turns the place before the instruction into the place after it.
static enum effect step(const struct instruction *i, struct place *place)
{
	int special = -1;

	if (i->is_vector && i->map == MAP_OTHER)
		return UNKNOWN; // APX has push and pop there
	if (!i->is_vector && i->map == MAP_ONE)
		special = step_special(i, place);
	else if (!i->is_vector && i->map == MAP_0F)
		special = step_special_0f(i, place);
	if (special >= 0)
		return special;
	const uint16_t written = x86_instruction_may_write(i);
	if (written >> MACHINE_BP & 1)
		write_fp(i, place);
	return written >> MACHINE_SP & 1 ? write_sp(i, place) : GO_ON;
}

static bool is_sane(const struct place *place)
{
	return place->sp < MAX_DISTANCE && place->sp > -MAX_DISTANCE && place->fp < MAX_DISTANCE &&
	       place->fp > -MAX_DISTANCE;
}

// Goes on to the next instruction; if there is none in the same range, the call before it does not
// return.
static bool go_on(struct search *search, const struct part *part, uint64_t address,
                  const struct place *come)
{
	return address - part->start >= part->size || reach(search, address, come);
}

static bool follow(struct search *search, uint64_t address)
{
	const struct part *part = find_part(search, address);
	struct place *place = &part->places[address - part->start], after = *place;
	struct instruction i;

	place->waits = false;
	if (!decode(search, part, address, &i))
		return false;
	const uint64_t next = address + place->length;
	const enum effect effect = step(&i, &after);
	if (place->length > i.length)
		after.sp += i.displacement; // by the loop
	if (effect == CALL || (effect == JUMP_SOMEWHERE && after.sp != AT_ENTRY))
		note_transfer(search, &after);
	search->needs_one |= effect == JUMP_SOMEWHERE && after.sp != AT_ENTRY;
	if (effect == UNKNOWN || !is_sane(&after))
		return false;
	switch (effect) {
	case JUMP:
		return jump(search, next + i.immediate, &after);
	case BRANCH:
		return jump(search, next + i.immediate, &after) &&
		       go_on(search, part, next, &after);
	case LEAVE:
	case JUMP_SOMEWHERE:
		return true;
	default:
		return go_on(search, part, next, &after);
	}
}

static bool follow_all(struct search *search)
{
	while (search->n_waiting > 0)
		if (!follow(search, search->waiting[--search->n_waiting]))
			return false;
	return true;
}

// Enters code that no followed way leads to: with what is known of it, if anything is; otherwise it
// must at least do nothing unknown.
static bool enter_gap(struct search *search, uint64_t address, const struct instruction *i)
{
	const struct arch_functions *functions = search->functions;
	struct place come = {0}, anywhere = {.has_fp = true};
	int64_t told;

	if (x86_instruction_is_padding(i))
		return true;
	if (functions->find_sp(functions->context, address, &told))
		come.sp = (int32_t)told;
	else if (search->has_transfer && !search->has_two)
		come = search->transfer;
	else
		return step(i, &anywhere) != UNKNOWN;
	return reach(search, address, &come) && follow_all(search);
}

static bool follow_gaps(struct search *search, size_t number)
{
	const struct part *part = &search->parts[number];
	struct instruction i;

	for (uint64_t at = 0; at < part->size;) {
		if (part->places[at].length) {
			at += part->places[at].length;
			continue;
		}
		if (!decode(search, part, part->start + at, &i) ||
		    !enter_gap(search, part->start + at, &i))
			return false;
		at += i.length;
	}
	return true;
}

// Returns the place of the instruction at the address; or of the call that ends one byte after it.
static const struct place *find_place(const struct part *part, uint64_t address, bool is_call)
{
	const size_t at = address - part->start;

	if (!is_call)
		return part->places[at].length ? &part->places[at] : NULL;
	for (size_t back = 1; back < X86_MAX_INSTRUCTION_BYTES && back <= at; back++)
		if (part->places[at - back].length == back + 1)
			return &part->places[at - back];
	return NULL;
}

static bool search_all(struct search *search, uint64_t address, bool is_call,
                       struct arch_frame *ret)
{
	const struct arch_functions *functions = search->functions;
	const struct place entry = {.sp = AT_ENTRY};
	struct arch_function function;

	if (!functions->find(functions->context, address, &function) || !function.is_entry ||
	    !add_part(search, &function) || !reach(search, function.start, &entry) ||
	    !follow_all(search))
		return false;
	for (size_t i = 0; i < search->n_parts; i++)
		if (!follow_gaps(search, i))
			return false;
	// Code that only a jump table leads to may come after a call that never returns, and seem
	// to have the arguments on the stack that were pushed for that call.
	if (search->needs_one && search->has_two)
		return false;
	const struct place *place = find_place(&search->parts[0], address, is_call);
	if (!place)
		return false;
	*ret = (struct arch_frame){-(int64_t)place->sp, place->has_fp, -(int64_t)place->fp};
	return true;
}

bool x86_frame_find(const struct arch_functions *functions, uint64_t address, bool is_call,
                    struct arch_frame *ret)
{
	struct search search = {.functions = functions};

	const bool found = search_all(&search, address, is_call, ret);
	search_deinit(&search);
	return found;
}

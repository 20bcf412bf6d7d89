// SPDX-License-Identifier: MIT
#include "x86_way.h"

#include <stdbool.h>

#include "memory.h"
#include "x86_instruction.h"

// rbx, rbp, r12 to r15 (psABI, 3.2.1).
static const uint16_t kept_by_calls = 1u << MACHINE_BX | 1u << MACHINE_BP | 0xf000;

// Follows what a realigned frame saves.
static void push_when_lost(struct way *way, uint8_t number)
{
	if (number == MACHINE_BP && !(way->written >> MACHINE_BP & 1)) {
		way->has_pushed_fp = true;
		way->pushed_fp_at = way->at;
	} else if (number == MACHINE_R10 && way->copies >> MACHINE_R10 & 1 && way->has_frame) {
		way->has_arguments = true;
		way->arguments_slot = way->at - way->pushed_fp_at;
		way->arguments_at = way->copied_at[MACHINE_R10];
	}
}

// Notes that the register is put into memory: if that is its first value, what is loaded from there
// later is not there yet.
static void note_stored(struct way *way, uint8_t number)
{
	way->stored |= ~way->written & 1u << number;
}

// Notes that a register is put into a word of the stack.
static void note_filled(struct way *way, int64_t at)
{
	if (way->base != BASE_SP || way->is_lost)
		return;
	if (way->n_filled < array_size(way->filled))
		way->filled[way->n_filled] = at;
	if (way->n_filled <= array_size(way->filled))
		way->n_filled++;
}

// True if the way may have filled that word of the stack: what it loads from there is not there
// yet.
static bool may_have_filled(const struct way *way, int64_t at)
{
	for (size_t i = 0; i < way->n_filled; i++)
		if (i == array_size(way->filled) || way->filled[i] == at)
			return true;
	return false;
}

static void push(struct way *way, uint8_t number)
{
	note_stored(way, number);
	way->at -= 8;
	if (way->is_lost)
		push_when_lost(way, number);
	// It is back in its place.
	way->took_return &= way->at != 0 || !(way->returns >> number & 1);
	if (way->is_lost || way->written >> number & 1)
		return;
	way->kept |= 1u << number;
	way->keeps[number] = way->at;
}

static void note_loaded(struct way *way, uint8_t number, uint8_t by, int64_t at)
{
	way->loaded |= ~way->stored & 1u << number;
	way->loaded_by[number] = by;
	way->loaded_at[number] = at;
}

static void pop(struct way *way, uint8_t number)
{
	const uint16_t bit = 1u << number;

	// Below where the stack pointer was at first, it is not there yet.
	const bool is_there = !way->is_lost && (way->base != BASE_SP || way->at >= 0);

	way->loaded &= ~bit;
	if (number == MACHINE_BP)
		way->has_frame = way->has_arguments = false;
	if (!way->is_lost && way->kept & bit && way->keeps[number] == way->at) {
		way->written &= ~bit; // unchanged
		way->popped &= ~bit;
	} else {
		way->written |= bit;
		way->popped = is_there ? way->popped | bit : way->popped & ~bit;
		way->places[number] = way->at;
		if (is_there && (way->base == BASE_SP || way->base == BASE_REGISTER))
			note_loaded(way, number, way->base == BASE_SP ? MACHINE_SP : way->number,
			            way->at);
	}
	way->returns &= ~bit;
	// Not what took its place, nor what a call left there that is no real one (to the next
	// instruction).
	if (way->base == BASE_SP && !way->is_lost && way->at == 0 && !way->took_return &&
	    !way->has_called) {
		way->took_return = true;
		way->returns |= bit;
	}
	way->copies &= ~bit;
	way->fp_is_of_process &= number != MACHINE_BP;
	way->at += 8;
}

// Follows mov of a register to the stack and from there, as push and pop.
static bool move_word(const struct instruction *i, struct way *way)
{
	const bool is_known = i->map == MAP_ONE && !i->is_vector && i->wide && i->plain_base &&
	                      i->rm == MACHINE_SP && i->reg != MACHINE_SP && !i->by_fs &&
	                      !way->is_lost;
	struct way there = *way;

	if (!is_known || (i->opcode != 0x89 && i->opcode != 0x8b))
		return false;
	there.at += i->displacement;
	if (i->opcode == 0x8b) {
		pop(&there, i->reg);
	} else if (!(way->kept >> i->reg & 1)) {
		there.at += 8;
		push(&there, i->reg);
	}
	there.at = way->at;
	there.compared = 0;
	there.checks_guard = false;
	*way = there;
	return true;
}

static void rebase(struct way *way, enum base base, int64_t at)
{
	way->base = base;
	way->at = at;
	// What was found from the other base is not known any more.
	way->popped = way->kept = 0;
	way->copies = 0;
	way->is_lost = way->has_pushed_fp = way->has_frame = way->has_arguments = false;
}

static void rebase_to_memory(struct way *way, uint8_t by, int64_t slot, int64_t at)
{
	way->slot = slot;
	way->slot_by = by;
	rebase(way, BASE_MEMORY, at);
}

// Sets the stack pointer to register + offset, if the register still has its first value, or a
// known one. GCC realigns a frame with arguments on the stack so: a register (r10) with the address
// of the arguments is saved in the frame, and at last gives the stack pointer back.
static enum effect take_register(struct way *way, uint8_t number, int64_t offset)
{
	if (way->copies >> number & 1) {
		way->at = way->copied_at[number] + offset;
		way->is_away = way->is_lost = way->has_pushed_fp = way->has_frame =
		    way->has_arguments = false;
		return GO_ON;
	}
	if (number == MACHINE_BP && way->fp_is_of_process) {
		rebase(way, BASE_PROCESS, offset);
		way->slot = way->fp_slot;
		return GO_ON;
	}
	if (number != MACHINE_SP && way->loaded >> number & 1) {
		rebase_to_memory(way, way->loaded_by[number], way->loaded_at[number], offset);
		return GO_ON;
	}
	if (number == MACHINE_SP || way->written >> number & 1)
		return DEAD_END;
	rebase(way, BASE_REGISTER, offset);
	way->number = number;
	return GO_ON;
}

// Goes from Erlang's stack to the thread's (lea), or back to where the process has its own (mov).
static bool change_stack(const struct instruction *i, struct way *way)
{
	if (!i->wide || i->reg != MACHINE_SP || !i->plain_base)
		return false;
	if (i->opcode == 0x8d && i->rm == MACHINE_BX && !way->is_away) {
		way->is_away = true;
		way->left_at = way->at;
		way->left_copies = way->copies;
		way->left_written = way->written;
		return true;
	}
	if (i->opcode != 0x8b || i->rm != MACHINE_R13 || way->written >> MACHINE_R13 & 1)
		return false;
	if (way->is_away) {
		way->at = way->left_at;
		way->came_back = true;
	} else {
		rebase(way, BASE_PROCESS, 0);
		way->slot = i->displacement;
	}
	way->is_away = false;
	return true;
}

// Handles instructions of one opcode byte that write the stack pointer.
static enum effect write_sp(const struct instruction *i, struct way *way)
{
	const bool on_sp = i->mod == 3 && i->rm == MACHINE_SP;

	if (on_sp && (i->opcode == 0x83 || i->opcode == 0x81) && i->wide &&
	    (i->reg_field == 0 || i->reg_field == 5)) { // add, sub
		way->at += i->reg_field == 0 ? i->immediate : -i->immediate;
		return GO_ON;
	}
	if (i->opcode == 0x8d && i->wide && i->reg == MACHINE_SP && i->plain_base) { // lea
		if (i->rm != MACHINE_SP)
			return take_register(way, i->rm, i->displacement);
		way->at += i->displacement;
		return GO_ON;
	}
	if (i->opcode == 0x89 && i->wide && on_sp)
		return take_register(way, i->reg, 0);
	if (i->opcode == 0x8b && i->wide && i->reg == MACHINE_SP) { // mov
		if (i->mod == 3)
			return take_register(way, i->rm, 0);
		if (i->plain_base && i->rm == MACHINE_SP && way->base == BASE_SP && !way->is_lost &&
		    !may_have_filled(way, way->at + i->displacement)) {
			rebase_to_memory(way, MACHINE_SP, way->at + i->displacement, 0);
			return GO_ON;
		}
	}
	// and, and sub of a register: harmless if the frame pointer leads back, which may still
	// have the value that it had before, or the address of the arguments.
	way->is_lost = true;
	if (!way->has_arguments) // what was pushed before lies at another distance now
		way->has_pushed_fp = way->has_frame = false;
	const bool leads_back = way->copies >> MACHINE_BP & 1 || way->copies >> MACHINE_R10 & 1 ||
	                        way->has_arguments || !(way->written >> MACHINE_BP & 1);
	return i->wide && leads_back &&
	               ((on_sp && (i->opcode == 0x29 || ((i->opcode == 0x83 || i->opcode == 0x81) &&
	                                                 i->reg_field == 4))) ||
	                (i->opcode == 0x2b && i->reg == MACHINE_SP))
	           ? GO_ON
	           : DEAD_END;
}

// Notes that a register by which functions leave their frames (%rbp, %r10, %r11) is made of the
// stack pointer.
static void note_copy(const struct instruction *i, uint8_t number, struct way *way)
{
	int32_t offset;

	if (way->is_lost || way->is_away || !x86_instruction_sets_to_sp(i, number, &offset))
		return;
	way->copies |= 1u << number;
	way->copied_at[number] = way->at + offset;
}

// Notes whether the frame pointer leads to what a realigned frame has saved.
static void note_frame(const struct instruction *i, struct way *way)
{
	int32_t offset;

	way->has_frame = way->is_lost && way->has_pushed_fp &&
	                 x86_instruction_sets_to_sp(i, MACHINE_BP, &offset) &&
	                 way->at + offset == way->pushed_fp_at;
	way->has_arguments = false;
}

static void note_written(const struct instruction *i, uint16_t written, struct way *way)
{
	way->written |= written;
	way->popped &= ~written;
	way->loaded &= ~(written | x86_instruction_implicit(i));
	way->copies &= ~(written | x86_instruction_implicit(i));
	way->returns &= ~(written | x86_instruction_implicit(i));
	note_copy(i, MACHINE_BP, way);
	note_copy(i, MACHINE_R10, way);
	note_copy(i, MACHINE_R11, way);
	if (written >> MACHINE_BP & 1)
		note_frame(i, way);
}

uint8_t x86_way_compared(const struct instruction *i)
{
	const bool on_registers = i->map == MAP_ONE && !i->is_vector && i->wide && i->mod == 3;

	if (on_registers && i->opcode == 0x39 && i->rm == MACHINE_SP)
		return i->reg;
	return on_registers && i->opcode == 0x3b && i->reg == MACHINE_SP ? i->rm : 0;
}

static bool is_jne(const struct instruction *i)
{
	return (i->map == MAP_ONE && i->opcode == 0x75) || (i->map == MAP_0F && i->opcode == 0x85);
}

// True for sub, xor and cmp %fs:0x28, %reg (-fstack-protector).
static bool checks_guard(const struct instruction *i)
{
	return i->map == MAP_ONE && i->by_fs && i->wide && i->mod == 0 && i->displacement == 0x28 &&
	       (i->opcode == 0x2b || i->opcode == 0x33 || i->opcode == 0x3b);
}

bool x86_way_is_failure(const struct instruction *i, const struct way *way)
{
	return way->checks_guard && is_jne(i);
}

void x86_way_pass_branch(const struct instruction *i, struct way *way)
{
	if (is_jne(i) && i->immediate < 0 && way->compared)
		take_register(way, way->compared, 0);
	way->compared = 0;
	way->checks_guard = false;
}

// Does the same for the frame pointer, which Erlang code keeps if it is to be profiled (+JPperf
// true): mov x(%r13), %rbp.
static void take_frame_pointer(const struct instruction *i, struct way *way)
{
	const uint16_t bit = 1u << MACHINE_BP;

	way->fp_is_of_process = false;
	if (!i->wide || i->opcode != 0x8b || i->reg != MACHINE_BP || !i->plain_base ||
	    i->rm != MACHINE_R13 || way->written >> MACHINE_R13 & 1)
		return;
	if (way->came_back) {
		way->copies |= way->left_copies & bit;
		way->written = (way->written & ~bit) | (way->left_written & bit);
		return;
	}
	way->fp_is_of_process = true;
	way->fp_slot = i->displacement;
}

static enum effect call(unsigned int how, struct way *way)
{
	way->copies &= kept_by_calls;
	way->loaded &= kept_by_calls;
	way->returns &= kept_by_calls;
	way->has_called = true;
	return how & WAY_FOLLOWS_CALLS ? GO_ON : DEAD_END;
}

// Follows mov of a word to a register from where the frame pointer points.
static bool load_by_fp(const struct instruction *i, struct way *way)
{
	const uint16_t bit = 1u << i->reg;
	const bool is_load = i->map == MAP_ONE && !i->is_vector && i->opcode == 0x8b && i->wide &&
	                     i->plain_base && i->rm == MACHINE_BP && i->reg != MACHINE_BP &&
	                     i->reg != MACHINE_SP && !i->by_fs;

	if (!is_load)
		return false;
	const bool is_unchanged =
	    way->copies >> MACHINE_BP & 1 && way->kept & bit &&
	    way->keeps[i->reg] == way->copied_at[MACHINE_BP] + i->displacement;
	note_written(i, bit, way);
	if (is_unchanged)
		way->written &= ~bit;
	else if (!(way->written >> MACHINE_BP & 1) && !way->fp_is_of_process)
		note_loaded(way, i->reg, MACHINE_BP, i->displacement);
	return true;
}

static enum effect step_plain(const struct instruction *i, unsigned int how, struct way *way)
{
	const uint16_t written = x86_instruction_may_write(i);

	if (how & WAY_TAKES_JUMPS && move_word(i, way))
		return GO_ON;
	if (i->map == MAP_ONE && !i->is_vector && i->opcode == 0x89 && i->mod != 3) {
		note_stored(way, i->reg);
		if (i->plain_base && i->rm == MACHINE_SP)
			note_filled(way, way->at + i->displacement);
	}
	if (load_by_fp(i, way)) {
		way->compared = 0;
		way->checks_guard = false;
		return GO_ON;
	}
	if (written >> MACHINE_SP & 1 && how & WAY_CHANGES_STACKS && i->map == MAP_ONE &&
	    !i->is_vector && change_stack(i, way))
		return GO_ON;
	if (written >> MACHINE_SP & 1)
		return write_sp(i, way);
	note_written(i, written, way);
	if (written >> MACHINE_BP & 1 && how & WAY_CHANGES_STACKS && i->map == MAP_ONE &&
	    !i->is_vector)
		take_frame_pointer(i, way);
	way->compared = x86_way_compared(i);
	way->checks_guard = checks_guard(i);
	return GO_ON;
}

// Each of these handles a kind of instruction of one opcode byte that changes the stack pointer or
// the way. They return an effect, or this.
enum { NOT_OF_THIS_KIND = -1 };

static int step_register(const struct instruction *i, struct way *way)
{
	const uint8_t op = i->opcode;

	if (op >= 0x50 && op <= 0x57) { // push
		push(way, i->low);
		return GO_ON;
	}
	if (op >= 0x58 && op <= 0x5f) { // pop
		pop(way, i->low);
		return i->low == MACHINE_SP ? DEAD_END : GO_ON;
	}
	if (op == 0xc9) { // leave
		const enum effect effect = take_register(way, MACHINE_BP, 0);
		pop(way, MACHINE_BP);
		return effect;
	}
	return NOT_OF_THIS_KIND;
}

// Handles push and pop of what is not a register.
static int step_value(const struct instruction *i, struct way *way)
{
	switch (i->opcode) {
	case 0x68:
	case 0x6a:
	case 0x9c: // push, push, pushf
		way->at -= 8;
		return GO_ON;
	case 0x9d: // popf
		way->at += 8;
		return GO_ON;
	case 0x8f: // pop to memory; its other forms are rare
		way->at += 8;
		return i->reg_field == 0 && i->mod != 3 ? GO_ON : DEAD_END;
	default:
		return NOT_OF_THIS_KIND;
	}
}

// Takes a jump to where a register points for a return, with the stack pointer as after a ret. The
// register has been taken from there, or has its first value, which is still to be compared with
// what lies there.
static enum effect return_by_jump(const struct instruction *i, struct way *way)
{
	const uint16_t bit = 1u << i->rm;

	if (i->mod != 3 || way->is_lost || way->base != BASE_SP || way->at < 0)
		return DEAD_END;
	way->at -= 8;
	way->is_jump = !(way->written & bit);
	way->jump = i->rm;
	return way->is_jump || (way->popped & bit && way->places[i->rm] == way->at) ? RETURN
	                                                                            : DEAD_END;
}

// Handles group 5, whose opcode goes on in ModRM's reg field.
static int step_group_5(const struct instruction *i, unsigned int how, struct way *way)
{
	switch (i->reg_field) {
	case 0:
	case 1: // inc, dec
		return NOT_OF_THIS_KIND;
	case 2: // call
		return call(how, way);
	case 4: // jmp
		return how & WAY_TAKES_JUMPS ? return_by_jump(i, way) : DEAD_END;
	case 6: // push
		way->at -= 8;
		return GO_ON;
	default: // far ones
		return DEAD_END;
	}
}

static int step_transfer(const struct instruction *i, unsigned int how, struct way *way)
{
	const uint8_t op = i->opcode;

	if ((op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3)) // jcc, loop, jrcxz
		return BRANCH;
	switch (op) {
	case 0xe8: // call
		return call(how, way);
	case 0xe9:
	case 0xeb: // jmp
		return JUMP;
	case 0xc2:
	case 0xc3: // ret
		return way->is_lost || (way->base == BASE_SP && way->at < 0) ? DEAD_END : RETURN;
	case 0xff:
		return step_group_5(i, how, way);
	case 0xc8:
	case 0xca:
	case 0xcb:
	case 0xcc:
	case 0xcd:
	case 0xcf:
	case 0xf1:
	case 0xf4: // enter, far ret, int3, int, iret, icebp, hlt
		return DEAD_END;
	default:
		return NOT_OF_THIS_KIND;
	}
}

static int step_special(const struct instruction *i, unsigned int how, struct way *way)
{
	int effect = step_register(i, way);

	if (effect == NOT_OF_THIS_KIND)
		effect = step_value(i, way);
	if (effect == NOT_OF_THIS_KIND)
		effect = step_transfer(i, how, way);
	return effect;
}

enum effect x86_way_step(const struct instruction *i, unsigned int how, struct way *way)
{
	if (i->map == MAP_ONE && !i->is_vector) {
		const int effect = step_special(i, how, way);
		if (effect != NOT_OF_THIS_KIND)
			return effect;
	}
	if (i->map == MAP_0F && !i->is_vector) {
		if (i->opcode >= 0x80 && i->opcode <= 0x8f)
			return BRANCH;
		if (i->opcode == 0x0b || i->opcode == 0xb9 || i->opcode == 0xff || // ud2, ud1, ud0
		    i->opcode == 0xa0 || i->opcode == 0xa1 || i->opcode == 0xa8 ||
		    i->opcode == 0xa9 || i->opcode == 0x07 || i->opcode == 0x35)
			return DEAD_END;
	}
	if (how & WAY_KEEPS_SP && x86_instruction_may_write(i) >> MACHINE_SP & 1)
		return DEAD_END;
	return step_plain(i, how, way);
}

// SPDX-License-Identifier: MIT
#include "rule_step.h"

#include "arch.h"
#include "exception_frame.h"
#include "expression.h"
#include "rule.h"
#include "snapshot.h"

// Tells why memory is not in the copy: the page was not in memory, the copy was cut, or it cannot
// be copied.
static enum stack_end unreadable(const struct snapshot *snapshot, uint64_t address)
{
	if (snapshot_has_gap_at(snapshot, address))
		return STACK_NOT_RESIDENT;
	return snapshot_is_cut_before(snapshot, address) ? STACK_NOT_COPIED : STACK_UNREADABLE;
}

// With what `unreadable` returns, *ret is where the memory is.
static enum stack_end evaluate(const struct expression *expression,
                               const struct registers *registers, const uint64_t *initial,
                               const struct snapshot *snapshot, uint64_t *ret)
{
	switch (expression_evaluate(expression, registers, initial, snapshot_read, snapshot, ret)) {
	case EXPRESSION_OK:
		return STACK_COMPLETE;
	case EXPRESSION_UNKNOWN_REGISTER:
		return STACK_NEEDS_REGISTER;
	case EXPRESSION_UNREADABLE:
		return unreadable(snapshot, *ret);
	default:
		return STACK_NO_RULE;
	}
}

static enum stack_end find_cfa(const struct rule *rule, const struct registers *registers,
                               const struct snapshot *snapshot, uint64_t *ret)
{
	if (rule->cfa_expression)
		return evaluate(rule->cfa_expression, registers, NULL, snapshot, ret);
	if (!registers_know(registers, rule->cfa_register))
		return STACK_NEEDS_REGISTER;
	*ret = registers->value[rule->cfa_register] + rule->cfa_offset;
	return STACK_COMPLETE;
}

bool rule_cfa(const struct rule *rule, const struct registers *registers,
              const struct snapshot *snapshot, uint64_t *ret)
{
	return find_cfa(rule, registers, snapshot, ret) == STACK_COMPLETE;
}

uint64_t rule_missing(const struct rule *rule, const struct registers *registers,
                      const struct snapshot *snapshot)
{
	uint64_t address;

	switch (find_cfa(rule, registers, snapshot, &address)) {
	case STACK_COMPLETE:   // what lies below it could not be read
	case STACK_UNREADABLE: // of the expression
	case STACK_NOT_COPIED:
		return address;
	default:
		return 0;
	}
}

// Finds the caller's value of one register.
static enum stack_end find_register(const struct register_rule *rule, uint64_t cfa,
                                    const struct registers *old, const struct snapshot *snapshot,
                                    uint64_t *ret)
{
	enum stack_end end;

	switch (rule->kind) {
	case REGISTER_AT_CFA:
		return snapshot_read_word(snapshot, cfa + rule->offset, ret)
		           ? STACK_COMPLETE
		           : unreadable(snapshot, cfa + rule->offset);
	case REGISTER_IS_CFA:
		*ret = cfa + rule->offset;
		return STACK_COMPLETE;
	case REGISTER_COPY:
		if (!registers_know(old, rule->offset))
			return STACK_NEEDS_REGISTER;
		*ret = old->value[rule->offset];
		return STACK_COMPLETE;
	case REGISTER_IS_EXPRESSION:
		return evaluate(rule->expression, old, &cfa, snapshot, ret);
	case REGISTER_AT_EXPRESSION:
		end = evaluate(rule->expression, old, &cfa, snapshot, ret);
		if (end == STACK_COMPLETE && !snapshot_read(snapshot, *ret, 8, ret))
			end = unreadable(snapshot, *ret);
		return end;
	default:
		return STACK_NO_RULE;
	}
}

// What a row says of the caller: the values of the registers that it names.
struct caller {
	uint64_t values[ARCH_MAX_REGISTERS]; // in the rule's order
	uint32_t named, known;               // by number, as in struct registers
	uint64_t sp, pc;
};

static void go_to_handler(const struct snapshot *snapshot, const struct registers *registers,
                          uint64_t cfa, struct caller *caller)
{
	const struct arch *arch = ARCH_NATIVE;
	struct exception_frame_handler handler;

	if (!exception_frame_find_handler(snapshot, registers, cfa, caller->pc, &handler))
		return;
	caller->sp = handler.sp;
	caller->pc = handler.pc;
	if (handler.is_part)
		caller->known &= 1u << arch->pc | 1u << arch->fp;
}

static enum stack_end find_caller(const struct rule *rule, const struct registers *registers,
                                  const struct snapshot *snapshot, struct caller *ret)
{
	const struct arch *arch = ARCH_NATIVE;
	uint64_t cfa;

	enum stack_end end = find_cfa(rule, registers, snapshot, &cfa);
	if (end != STACK_COMPLETE)
		return end;
	ret->named = ret->known = 0;
	ret->sp = cfa;
	for (size_t i = 0; i < rule->n_registers; i++) {
		const struct register_rule *one = &rule->registers[i];
		const uint32_t bit = 1u << one->number;
		end = find_register(one, cfa, registers, snapshot, &ret->values[i]);
		ret->named |= bit;
		if (end == STACK_COMPLETE) {
			ret->known |= bit;
			if (one->number == arch->sp)
				ret->sp = ret->values[i];
			else if (one->number == arch->pc)
				ret->pc = ret->values[i];
		} else if (one->number == arch->pc) {
			return end;
		}
	}
	if (!(ret->known >> arch->pc & 1))
		return STACK_NO_RULE;
	// Any jump to where a register points may seem to be a return: one is, if that is what lies
	// where a return address would.
	if (rule->is_jump &&
	    (!registers_know(registers, rule->jump) || registers->value[rule->jump] != ret->pc))
		return STACK_NO_RULE;
	if (rule->raises)
		go_to_handler(snapshot, registers, cfa, ret);
	return STACK_COMPLETE;
}

// Goes on at the handler for which a function that this one has called leaves all frames between
// (_Unwind_RaiseException, called by _Unwind_Resume_or_Rethrow).
static bool leave_for_handler(const struct snapshot *snapshot, struct registers *registers)
{
	const struct arch *arch = ARCH_NATIVE;
	struct exception_frame_handler handler;

	if (!exception_frame_find_handler_of_callee(snapshot, registers, &handler))
		return false;
	registers->known &= 1u << arch->fp;
	registers_set(registers, arch->sp, handler.sp);
	registers_set(registers, arch->pc, handler.pc);
	return true;
}

// True if the rule leads down to another stack: a table says where that is, by what memory or the
// frame pointer holds. The copy has it.
static bool leads_to_other_stack(const struct rule *rule, const struct snapshot *snapshot,
                                 uint64_t sp, uint64_t caller_sp)
{
	if (rule->kind != RULE_ROW)
		return false;
	if (rule->cfa_expression)
		return expression_reads_memory(rule->cfa_expression);
	const size_t to = snapshot_find_region(snapshot, caller_sp - 1);
	size_t from = snapshot_find_region(snapshot, sp);
	if (from == snapshot->n_regions)
		from = snapshot_find_region(snapshot, sp - 1);
	return from != to && from < snapshot->n_regions && to < snapshot->n_regions;
}

// Works in place, and changes only what differs: the time of unwinding is spent here.
enum stack_end rule_step(const struct rule *rule, bool is_return, const struct snapshot *snapshot,
                         struct registers *registers)
{
	const struct arch *arch = ARCH_NATIVE;
	struct caller caller;

	enum stack_end end = find_caller(rule, registers, snapshot, &caller);
	// Stacks grow down: a caller's frame lies above, except for one on another stack, as where
	// a signal interrupted it. A leaf may have taken its return address off the stack (vfork).
	if (end == STACK_COMPLETE && !rule->signal_frame && !rule->is_elsewhere &&
	    caller.sp < registers->value[arch->sp] + is_return &&
	    !leads_to_other_stack(rule, snapshot, registers->value[arch->sp], caller.sp))
		end = STACK_NO_PROGRESS;
	if (end != STACK_COMPLETE)
		return rule->raises && is_return && leave_for_handler(snapshot, registers)
		           ? STACK_COMPLETE
		           : end;
	if (!rule->signal_frame)
		registers->known &= arch->preserved;
	registers->known = (registers->known & ~caller.named) | caller.known;
	for (size_t i = 0; i < rule->n_registers; i++) {
		const unsigned int number = rule->registers[i].number;
		if (caller.known >> number & 1)
			registers->value[number] = caller.values[i];
	}
	registers_set(registers, arch->sp, caller.sp);
	registers_set(registers, arch->pc, caller.pc);
	return STACK_COMPLETE;
}

// SPDX-License-Identifier: MIT
#include "arch.h"
#include "hotspot_code.h"
#include "java.h"
#include "language.h"
#include "rule.h"
#include "rule_step.h"
#include "snapshot.h"
#include "unwind.h"

// A frame, for the memory that a step needs of it; the step itself finds out the rest.
static struct rule frame_up_to(unsigned int number, int64_t offset)
{
	return (struct rule){
	    .kind = RULE_LANGUAGE, .cfa_register = (uint8_t)number, .cfa_offset = offset};
}

// The routine that puts frames of a virtual thread back on the stack.
static bool rule_of_barrier(const struct language_code *code, struct rule *ret)
{
	if (!code->is_call || !hotspot_code_is_return_barrier(code->code, code->address))
		return false;
	*ret = (struct rule){.kind = RULE_ELSEWHERE};
	return true;
}

// Routines written by hand.
static void rule_of_routine(const struct language_code *code, struct rule *ret)
{
	if (rule_of_barrier(code, ret))
		return;
	if (!ARCH_NATIVE->code_rule(code->code, code->address, code->is_call, ret))
		ARCH_NATIVE->frame_pointer_rule(ret);
}

bool java_rule(const struct language_code *code, struct rule *ret)
{
	enum { SAVED_FP_AND_RETURN = 16, RETURN = 8 };
	const struct arch *arch = ARCH_NATIVE;
	struct java *java = code->process;

	if (!code->is_jit)
		return false;
	// Where HotSpot is not known, its code is told by its looks.
	if (!java)
		return rule_of_barrier(code, ret);
	if (!java_claims(java, code->address))
		return false;
	const struct java_site *site = java_code_find(&java->code, code->address, code->is_call);
	if (!site)
		return false;
	const struct java_blob *blob = java_code_blob(&java->code, site);
	if (blob->kind == JAVA_INTERPRETER || code->address == java->call_stub)
		*ret = frame_up_to(arch->fp, SAVED_FP_AND_RETURN);
	else if (blob->kind == JAVA_OTHER)
		rule_of_routine(code, ret);
	else
		*ret = frame_up_to(arch->sp, blob->frame_bytes ? blob->frame_bytes : RETURN);
	return true;
}

bool java_rule_at_jump(const struct arch_code *code, uint64_t end, bool keeps_fp, struct rule *ret)
{
	if (!keeps_fp || !hotspot_code_is_dispatch(code, end))
		return false;
	hotspot_code_interpreter_rule(ret);
	return true;
}

// Steps as the rule says, or by the frame pointer if Java's own rule does not fit.
static struct move step_plain(struct language_step *step)
{
	struct language_step other = *step;
	struct rule by_frame_pointer;

	if (step->rule->kind == RULE_LANGUAGE) {
		ARCH_NATIVE->frame_pointer_rule(&by_frame_pointer);
		other.rule = &by_frame_pointer;
	}
	return unwind_step_plain(&other);
}

// Tells why the copy does not hold the frame.
static struct move end_unread(const struct language_step *step)
{
	uint64_t end;

	if (!rule_cfa(step->rule, step->registers, step->snapshot, &end))
		return move_end_with(STACK_UNREADABLE);
	if (snapshot_has_gap_at(step->snapshot, end - 1))
		return move_end_with(STACK_NOT_RESIDENT);
	return move_end_with(snapshot_is_cut_before(step->snapshot, end - 1) ? STACK_NOT_COPIED
	                                                                     : STACK_UNREADABLE);
}

struct move java_take_step(struct language_step *step)
{
	struct java *java = *step->process;
	uint64_t *n_steps = &step->words[0];

	if (!java)
		return step_plain(step);
	const bool is_first = (*n_steps)++ == 0;
	switch (
	    java_step(java, step->snapshot, step->n, is_first, step->is_return, step->registers)) {
	case JAVA_STEP_DONE:
		return move_go_on();
	case JAVA_STEP_NEEDS_REGISTER:
		return move_end_with(STACK_NEEDS_REGISTER);
	case JAVA_STEP_UNREADABLE:
		return end_unread(step);
	default:
		return step_plain(step);
	}
}

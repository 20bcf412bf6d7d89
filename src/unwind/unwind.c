// SPDX-License-Identifier: MIT
#include "unwind.h"

#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "arch.h"
#include "call_check.h"
#include "language.h"
#include "memory.h"
#include "rule.h"
#include "rule_cache.h"
#include "rule_step.h"
#include "snapshot.h"
#include "stack_root.h"
#include "unwind_entry.h"

enum {
	MAX_SIGNAL_FRAMES = 32, // handlers nested in one stack
};

void unwinder_init(struct unwinder *unwinder, struct address_space *space, struct profile *profile,
                   struct rule_cache *rules, uint32_t max_frames)
{
	*unwinder = (struct unwinder){
	    .space = space,
	    .profile = profile,
	    .rules = rules,
	    .max_frames = max_frames,
	    .huge_frames = max_frames,
	    .frames = memory_alloc(max_frames * sizeof(uint32_t)),
	    .sps = memory_alloc(max_frames * sizeof(uint64_t)),
	};
	unwind_entries_init(unwinder);
}

void unwinder_deinit(struct unwinder *unwinder)
{
	free(unwinder->frames);
	free(unwinder->sps);
	free(unwinder->pcs);
	unwind_entries_deinit(unwinder);
	call_checks_destroy(unwinder->call_checks);
	*unwinder = (struct unwinder){0};
}

static struct move apply_row(const struct rule *rule, bool is_return,
                             const struct snapshot *snapshot, struct registers *registers)
{
	return unwind_go_on_or_end(rule_step(rule, is_return, snapshot, registers));
}

// Ends the walk when there is no rule at all: with the outermost frame, if it is the program's
// entry code, or has a frame pointer of zero at the top of a stack; else for the reason given.
static struct move end_without_rule(const struct unwinder *unwinder,
                                    const struct registers *registers, enum stack_end reason)
{
	const struct arch *arch = ARCH_NATIVE;
	const uint64_t sp = registers->value[arch->sp];
	const bool is_outermost =
	    registers_know(registers, arch->fp) && registers->value[arch->fp] == 0;

	if (stack_root_is_entry(unwinder->space, sp) ||
	    (is_outermost && stack_root_is_top(unwinder->space, sp, unwinder->tls)))
		return move_end_with(STACK_COMPLETE);
	return move_end_with(reason);
}

// True if the frame pointer that a frame has saved lies in the frame itself. Nothing of its caller
// does: what lies there is no saved frame pointer, and what follows it no return address, but maybe
// one of a call that has long returned.
static bool points_into_frame(const struct registers *registers, const struct registers *caller)
{
	const unsigned int sp = ARCH_NATIVE->sp;
	const uint64_t fp = caller->value[ARCH_NATIVE->fp];

	return fp >= registers->value[sp] && fp < caller->value[sp];
}

bool unwind_is_called_from(struct unwinder *unwinder, const struct registers *caller)
{
	const uint64_t pc = caller->value[ARCH_NATIVE->pc];

	return address_space_is_code(unwinder->space, pc) &&
	       unwind_entry_find(unwinder, pc, true)->may_return;
}

// True if a call returns to the caller's pc; or if a signal made the call, so that the caller is
// its trampoline; or a stack begins there.
static bool is_begun_from(struct unwinder *unwinder, const struct registers *caller)
{
	const uint64_t pc = caller->value[ARCH_NATIVE->pc];
	const struct unwinder_entry *entry = unwind_entry_find(unwinder, pc, true);

	return (entry->may_return && address_space_is_code(unwinder->space, pc)) ||
	       entry->is_entered || entry->rule->signal_frame;
}

// True if the caller may have called the frame's function. True, too, if no call has begun it.
static bool may_have_called(struct unwinder *unwinder, const struct registers *registers,
                            bool is_return, const struct registers *caller)
{
	const unsigned int pc = ARCH_NATIVE->pc;
	const struct unwinder_entry *entry = unwind_entry_find(unwinder, caller->value[pc], true);

	if (!entry->may_return || entry->is_entered || entry->rule->signal_frame)
		return true;
	if (!unwinder->call_checks)
		unwinder->call_checks = call_checks_create();
	return call_checks_allow(unwinder->call_checks, unwinder->space, registers->value[pc],
	                         is_return, caller->value[pc]);
}

// Steps by the frame pointer in code without CFI; that counts only if the result looks like a
// frame. Such code may as well keep there what points to any two words, a function's address among
// them.
static struct move guess(struct unwinder *unwinder, const struct rule *rule, bool is_return,
                         const struct snapshot *snapshot, struct registers *registers)
{
	const struct arch *arch = ARCH_NATIVE;
	struct registers caller = *registers;

	if (!registers_know(registers, arch->fp))
		return end_without_rule(unwinder, registers, STACK_NEEDS_REGISTER);
	if (registers->value[arch->fp] < registers->value[arch->sp] ||
	    registers->value[arch->fp] % 8 != 0)
		return end_without_rule(unwinder, registers, STACK_NO_RULE);
	const struct move move = apply_row(rule, is_return, snapshot, &caller);
	// Whether it leads to a frame is not known before a copy holds that place.
	if (!move.go_on && (move.end == STACK_NOT_COPIED || move.end == STACK_NOT_RESIDENT))
		return end_without_rule(unwinder, registers, move.end);
	if (!move.go_on || !address_space_is_code(unwinder->space, caller.value[arch->pc]) ||
	    !is_begun_from(unwinder, &caller) || points_into_frame(registers, &caller) ||
	    !may_have_called(unwinder, registers, is_return, &caller))
		return end_without_rule(unwinder, registers, STACK_NO_RULE);
	// What such code did with the other registers is not known.
	caller.known &= 1u << arch->pc | 1u << arch->sp | 1u << arch->fp | rule->kept;
	unwinder->n_frame_pointer_steps++;
	unwinder->has_guessed = true;
	*registers = caller;
	return move_go_on();
}

// Keeps registers that the called function left alone: assembly may rely on more of them than the
// ABI makes a function preserve.
static void keep_left_alone(struct unwinder *unwinder, const struct registers *registers,
                            struct registers *caller)
{
	const struct arch *arch = ARCH_NATIVE;
	const struct rule *rule = unwind_entry_find(unwinder, caller->value[arch->pc], true)->rule;

	caller->known |= registers->known & rule->left_alone &
	                 ~(arch->preserved | 1u << arch->sp | 1u << arch->pc);
}

// Steps by what the code does until it returns. That counts only if it leads to the place after a
// call, or to a signal trampoline: code after a call that never returns would mislead.
static struct move follow_code(struct unwinder *unwinder, const struct rule *rule, bool is_return,
                               const struct snapshot *snapshot, struct registers *registers)
{
	const struct arch *arch = ARCH_NATIVE;
	struct registers caller = *registers;
	struct rule by_frame_pointer;

	const struct move move = apply_row(rule, is_return, snapshot, &caller);
	// After a guess the stack pointer may be another one than the code counts from.
	if (move.go_on && is_begun_from(unwinder, &caller) &&
	    (!unwinder->has_guessed || may_have_called(unwinder, registers, is_return, &caller))) {
		if (rule->cfa_register == arch->fp && !rule->cfa_expression)
			unwinder->n_frame_pointer_steps++;
		else
			unwinder->n_code_steps++;
		keep_left_alone(unwinder, registers, &caller);
		*registers = caller;
		return move_go_on();
	}
	if (!move.go_on && move.end == STACK_NEEDS_REGISTER)
		return move;
	arch->frame_pointer_rule(&by_frame_pointer);
	by_frame_pointer.kept = rule->kept;
	const struct move guessed =
	    guess(unwinder, &by_frame_pointer, is_return, snapshot, registers);
	// It may lead to a stack that was not copied.
	return !guessed.go_on && guessed.end == STACK_NO_RULE && !move.go_on ? move : guessed;
}

// Steps by what the target says of its JIT code, which need not be true.
static struct move apply_image(struct unwinder *unwinder, const struct rule *rule, bool is_return,
                               const struct snapshot *snapshot, struct registers *registers)
{
	struct registers caller = *registers;

	const struct move move = apply_row(rule, is_return, snapshot, &caller);
	if (!move.go_on)
		return move;
	if (!rule->signal_frame && !unwind_is_called_from(unwinder, &caller))
		return move_end_with(STACK_NO_RULE);
	*registers = caller;
	return move_go_on();
}

// Steps by the stack pointer, if the frame pointer is not known. A rule that was made for that from
// the code counts only if it leads to the place after a call, to a signal trampoline, or to nobody.
static struct move apply_by_sp(struct unwinder *unwinder, bool is_return,
                               const struct snapshot *snapshot, struct registers *registers)
{
	const uint64_t pc = registers->value[ARCH_NATIVE->pc];
	const uint32_t location = unwind_entry_find(unwinder, pc, is_return)->location;
	const struct rule *rule = rule_cache_find_by_sp(unwinder->rules, location);
	struct registers caller = *registers;

	if (!rule) {
		const struct code_address code = unwind_entry_resolve(unwinder, pc, is_return);
		rule = rule_cache_get_by_sp(unwinder->rules, location, &code, is_return);
	}
	if (rule->kind == RULE_NONE)
		return move_end_with(STACK_NEEDS_REGISTER);
	const struct move move = apply_row(rule, is_return, snapshot, &caller);
	if (!move.go_on)
		return move;
	if (caller.value[ARCH_NATIVE->pc] != 0 && !is_begun_from(unwinder, &caller))
		return move_end_with(STACK_NEEDS_REGISTER);
	*registers = caller;
	return move_go_on();
}

static inline __attribute__((always_inline)) struct move
apply_table(struct unwinder *unwinder, const struct rule *rule, bool is_return,
            const struct snapshot *snapshot, struct registers *registers)
{
	const struct move move = apply_row(rule, is_return, snapshot, registers);

	if (!move.go_on && move.end == STACK_NEEDS_REGISTER)
		return apply_by_sp(unwinder, is_return, snapshot, registers);
	return move;
}

// Returns how much higher the code lies in the process than its module says.
static uint64_t bias_of(struct unwinder *unwinder, uint64_t pc, bool is_return)
{
	const struct unwinder_entry *entry = unwind_entry_find(unwinder, pc, is_return);
	const uint64_t code = pc - (is_return && !entry->is_entered);

	return code - unwinder->profile->locations[entry->location].address;
}

// Steps by the rule's kind. Inlined for the walk: a call made a frame a tenth more expensive.
static inline __attribute__((always_inline)) struct move
step_plain(struct unwinder *unwinder, const struct rule *rule, bool is_return,
           const struct snapshot *snapshot, struct registers *registers)
{
	switch (rule->kind) {
	case RULE_ROOT:
		return move_end_with(STACK_COMPLETE);
	case RULE_ROW:
		return apply_table(unwinder, rule, is_return, snapshot, registers);
	case RULE_IMAGE:
		return apply_image(unwinder, rule, is_return, snapshot, registers);
	case RULE_ELSEWHERE:
		return move_end_with(STACK_SWITCHED);
	case RULE_CODE:
		return follow_code(unwinder, rule, is_return, snapshot, registers);
	case RULE_FRAME_POINTER:
		return guess(unwinder, rule, is_return, snapshot, registers);
	default:
		return move_end_with(STACK_NO_RULE); // no code at all
	}
}

struct move unwind_step_plain(struct language_step *step)
{
	return step_plain(step->unwinder, step->rule, step->is_return, step->snapshot,
	                  step->registers);
}

uint64_t unwind_step_bias(const struct language_step *step)
{
	return bias_of(step->unwinder, step->registers->value[ARCH_NATIVE->pc], step->is_return);
}

const struct rule *unwind_rule_at(struct unwinder *unwinder, uint64_t pc)
{
	return unwind_entry_find(unwinder, pc, false)->rule;
}

bool unwind_is_code(const struct unwinder *unwinder, const struct registers *caller)
{
	return address_space_is_code(unwinder->space, caller->value[ARCH_NATIVE->pc]);
}

// Has the rule's language take the step.
static struct move step_by_language(struct unwinder *unwinder, const struct rule *rule,
                                    bool is_return, size_t n, const struct snapshot *snapshot,
                                    struct registers *registers)
{
	const size_t i = rule->language - 1u;

	if (!(unwinder->stepped >> i & 1))
		memset(unwinder->words[i], 0, sizeof(unwinder->words[i]));
	unwinder->stepped |= 1u << i;
	return languages[i]->step(&(struct language_step){
	    .unwinder = unwinder,
	    .snapshot = snapshot,
	    .note = &snapshot->notes[i],
	    .rule = rule,
	    .is_return = is_return,
	    .n = n,
	    .process = &unwinder->space->languages[i],
	    .words = unwinder->words[i],
	    .registers = registers,
	});
}

// True if there is nobody to return to. `begins`: the frame that was left may say so itself.
static bool ends_at(struct unwinder *unwinder, const struct registers *registers, bool begins,
                    enum stack_end *ret)
{
	const uint64_t pc = registers->value[ARCH_NATIVE->pc];
	const uint64_t sp = registers->value[ARCH_NATIVE->sp];

	if (pc != 0 && !stack_root_is_passed(unwinder->space, sp, pc))
		return false;
	*ret = pc != 0 || begins || stack_root_is_top(unwinder->space, sp, unwinder->tls)
	           ? STACK_COMPLETE
	           : STACK_NO_RETURN;
	return true;
}

// Adds the frame whose registers these are to the stack, as number `n`. Returns its rule. *doubtful
// becomes n if nothing calls from there, unless it is a frame already.
static const struct rule *add_frame(struct unwinder *unwinder, size_t n,
                                    const struct registers *registers, bool is_return,
                                    size_t *doubtful)
{
	const uint64_t pc = registers->value[ARCH_NATIVE->pc];
	const struct unwinder_entry *entry = unwind_entry_find(unwinder, pc, is_return);

	if (unwinder->pcs)
		unwinder->pcs[n] = pc;
	unwinder->sps[n] = registers->value[ARCH_NATIVE->sp];
	unwinder->frames[n] = entry->location;
	if (is_return && *doubtful == 0 && !entry->may_return && !entry->is_entered &&
	    !entry->rule->signal_frame)
		*doubtful = n;
	return entry->rule; // the entry may move in a step
}

// Returns where the memory is that could not be read; 0: not known.
static uint64_t find_missing(const struct rule *rule, enum stack_end end,
                             const struct registers *registers, const struct snapshot *snapshot)
{
	// A language knows where it is.
	if ((end != STACK_UNREADABLE && end != STACK_NOT_COPIED) || rule->is_elsewhere)
		return 0;
	return rule_missing(rule, registers, snapshot);
}

// Drops the frames from the doubtful one on, if the walk has failed after it: what lies at the
// bottom of a fiber's stack (a function's address, and its argument) is no caller. A walk that
// reaches a root, or goes on elsewhere, proves that it was one.
static void drop_doubtful(const struct unwinder *unwinder, size_t doubtful,
                          struct registers *registers, struct unwound *ret)
{
	switch (ret->end) {
	case STACK_NO_RULE:
	case STACK_NO_RETURN:
	case STACK_NO_PROGRESS:
	case STACK_UNREADABLE:
		break;
	default:
		return;
	}
	if (doubtful == 0)
		return;
	ret->n = doubtful;
	ret->end = STACK_NO_RETURN;
	ret->missing = 0;
	registers->value[ARCH_NATIVE->sp] = unwinder->sps[doubtful];
}

// Goes from frame to frame until there is no caller, or none is found. Returns the number of
// frames; `registers` are then those of the last one, or of what it would return to.
static size_t walk_frames(struct unwinder *unwinder, const struct snapshot *snapshot,
                          struct registers *registers, size_t *doubtful, struct unwound *ret)
{
	const size_t limit = snapshot->is_huge ? unwinder->huge_frames : unwinder->max_frames;
	bool is_return = false, begins = false;
	int signal_frames = 0;

	ret->missing = 0;
	for (size_t n = 0;;) {
		if (n > 0 && ends_at(unwinder, registers, begins, &ret->end))
			return n;
		if (n == limit) {
			ret->end = STACK_TOO_DEEP;
			return n;
		}
		const struct rule *rule = add_frame(unwinder, n++, registers, is_return, doubtful);
		if (rule->signal_frame && ++signal_frames > MAX_SIGNAL_FRAMES) {
			ret->end = STACK_NO_PROGRESS;
			return n;
		}
		const struct move move =
		    rule->language
		        ? step_by_language(unwinder, rule, is_return, n - 1, snapshot, registers)
		        : step_plain(unwinder, rule, is_return, snapshot, registers);
		if (!move.go_on) {
			ret->end = move.end;
			ret->missing = find_missing(rule, move.end, registers, snapshot);
			return n;
		}
		is_return = !rule->signal_frame && !move.begins;
		begins = rule->begins;
	}
}

// Judges a stack that the walk has left before its end. One that is far deeper keeps the frames
// that the next walk will find; one that was taken for that, and may be shown whole, is to be
// copied.
static void judge_depth(const struct unwinder *unwinder, const struct snapshot *snapshot,
                        struct unwound *ret)
{
	const size_t walks = unwinder->max_frames / ret->n;
	const bool is_huge = snapshot_is_huge(snapshot, ret->last_sp, walks);

	if (snapshot->is_huge && !is_huge)
		ret->end = STACK_NOT_COPIED;
	if (!is_huge || ret->n <= unwinder->huge_frames)
		return;
	ret->n = unwinder->huge_frames;
	ret->last_sp = unwinder->sps[ret->n];
}

void unwinder_unwind(struct unwinder *unwinder, const struct snapshot *snapshot,
                     struct unwound *ret)
{
	const uint64_t guesses = unwinder->n_frame_pointer_steps, codes = unwinder->n_code_steps;
	struct registers registers = snapshot->registers;
	size_t doubtful = 0;

	unwind_entries_refresh(unwinder);
	unwinder->stepped = 0;
	unwinder->has_guessed = false;
	unwinder->tls = snapshot->tls;
	ret->n = walk_frames(unwinder, snapshot, &registers, &doubtful, ret);
	drop_doubtful(unwinder, doubtful, &registers, ret);
	ret->locations = unwinder->frames;
	ret->sps = unwinder->sps;
	ret->reached_sp = ret->last_sp = registers.value[ARCH_NATIVE->sp];
	ret->base = ret->end == STACK_COMPLETE ? ret->last_sp : 0;
	ret->guessed = (unwinder->n_frame_pointer_steps != guesses ? GUESSED_BY_FRAME_POINTER : 0) |
	               (unwinder->n_code_steps != codes ? GUESSED_BY_CODE : 0);
	unwinder->n_frames += ret->n;
	if (ret->end == STACK_TOO_DEEP)
		judge_depth(unwinder, snapshot, ret);
}

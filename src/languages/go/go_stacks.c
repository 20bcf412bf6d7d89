// SPDX-License-Identifier: MIT
#include "go_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "go_runtime.h"
#include "go_switch.h"
#include "go_thread.h"
#include "languages.h"
#include "memory.h"
#include "rule_step.h"
#include "snapshot.h"
#include "unwind.h"

// What is kept of a process is a struct go_layout, as its stacks have shown it.

_Static_assert(sizeof(struct go_walk) <= LANGUAGE_WORDS * sizeof(uint64_t), "in its words");

static bool go_rule_before_tables(const struct language_code *code, struct rule *ret)
{
	return go_runtime_rule(code->at->module, code->at->address, code->is_call, ret);
}

// Writes only what has changed: a signal handler that copies a thread could find it half written.
static void set_layout(struct go_layout *layout, const struct go_layout *wanted)
{
	if (memcmp(layout, wanted, sizeof(*layout)) != 0)
		*layout = *wanted;
}

static void note_layout(struct language_step *step, const struct go_rule *rule)
{
	struct go_layout *known = *step->process;
	struct go_layout layout = rule->layout;

	if (!go_layout_is_known(&layout))
		return;
	if (layout.tls_at)
		layout.tls_at += unwind_step_bias(step);
	if (known) {
		layout.goid = known->goid;
		layout.status = known->status;
		layout.labels = known->labels;
		set_layout(known, &layout);
		return;
	}
	known = memory_alloc(sizeof(*known));
	*known = layout;
	*step->process = known; // when it is whole
}

static const struct go_thread *thread_of(const struct snapshot_note *note)
{
	static const struct go_thread none;

	return note->size == sizeof(none) ? (const struct go_thread *)note->bytes : &none;
}

static struct move go_step(struct language_step *step)
{
	struct registers *registers = step->registers;
	struct go_walk *walk = (struct go_walk *)step->words;
	struct go_rule rule;

	memcpy(&rule, step->rule->words, sizeof(rule));
	if (step->rule->kind == RULE_ROOT || step->rule->kind == RULE_LANGUAGE)
		note_layout(step, &rule);
	if (step->rule->kind != RULE_LANGUAGE)
		return unwind_step_plain(step);
	walk->go = thread_of(step->note);
	const enum go_move move = go_switch_walk(step->snapshot, rule.go_switch, rule.slot,
	                                         step->is_return, walk, registers);
	switch (move) {
	case GO_FRAME:
		return unwind_go_on_or_end(
		    rule_step(step->rule, step->is_return, step->snapshot, registers));
	case GO_LEFT:
	case GO_CALLER:
		if (unwind_is_called_from(step->unwinder, registers))
			return move_go_on();
		return move == GO_LEFT && unwind_is_code(step->unwinder, registers)
		           ? (struct move){.go_on = true, .begins = true}
		           : move_end_with(STACK_SWITCHED);
	default:
		return move_end_with(move == GO_ROOT ? STACK_COMPLETE : STACK_SWITCHED);
	}
}

static void know(struct snapshot_copy *copy, const struct go_stack *stack, bool is_exact)
{
	if (stack->address)
		snapshot_copy_know(copy, &(struct known_stack){stack->low, stack->high, is_exact});
}

// Finds the stacks of the thread, and notes what Go's runtime says of it.
static void go_ask(const struct language_thread *thread, struct snapshot_copy *copy)
{
	struct go_thread go = {0};

	if (!thread->process)
		return;
	copy->has_many_bases = true;
	if (!thread->tls)
		return;
	go_thread_read(thread->tid, copy->hint->resident, thread->tls, thread->process, &go);
	know(copy, &go.goroutine, true);
	know(copy, &go.own, false);
	snapshot_copy_note(copy, &go, sizeof(go));
}

// Returns where the goroutine's stack begins. If the thread still runs as the goroutine, or did
// when a signal came, it has noted that only in a register, which may be anywhere by now.
static uint64_t goroutine_sp(const struct go_thread *go)
{
	const struct go_stack *stack = &go->goroutine;

	if (!stack->address || go->g == go->own.address)
		return stack->sp;
	return stack->high - stack->low > SNAPSHOT_UNKNOWN_STACK_BYTES
	           ? stack->high - SNAPSHOT_UNKNOWN_STACK_BYTES
	           : stack->low;
}

// Copies the stack that waits for what runs on the other one.
static void go_copy(const struct language_thread *thread, struct snapshot_copy *copy)
{
	static const struct go_thread none;
	const struct go_layout *layout = thread->process;
	const struct go_thread *go = thread_of(&copy->snapshot->notes[copy->language]);
	uint64_t sp = 0;

	if (!layout || !go->m || copy->snapshot->n_regions == 0)
		return;
	if (go->goroutine.address && !snapshot_copy_has(copy, go->goroutine.high - 1))
		sp = goroutine_sp(go);
	else if (layout->calls_back && !snapshot_copy_has(copy, go->own.sp))
		sp = go->own.sp;
	if (sp)
		snapshot_copy_stack(copy, sp);
	if (!go_thread_is_valid(thread->tid, copy->hint->resident, go))
		snapshot_copy_note(copy, &none, sizeof(none));
}

static enum language_lack go_lacks(const struct language_thread *thread,
                                   const struct snapshot_note *note)
{
	if (!thread->process || note->size != 0)
		return LANGUAGE_LACKS_NOTHING;
	return thread->tls ? LANGUAGE_LACKS_COPY : LANGUAGE_LACKS_STOP;
}

const struct language go_language = {
    .name = "go",
    .destroy = free,
    .rule_before_tables = go_rule_before_tables,
    .ask = go_ask,
    .copy = go_copy,
    .step = go_step,
    .lacks = go_lacks,
    .tasks = &go_tasks,
};

const struct go_thread *go_stacks_thread(const struct snapshot *snapshot)
{
	return thread_of(&snapshot->notes[language_position(&go_language)]);
}

void go_stacks_set_thread(struct snapshot *snapshot, const struct go_thread *thread)
{
	snapshot->notes[language_position(&go_language)] =
	    (struct snapshot_note){(const uint8_t *)thread, sizeof(*thread)};
}

void go_stacks_set_fields(const struct address_space *space, uint16_t goid, uint16_t status,
                          uint16_t labels)
{
	struct go_layout *known = space->languages[language_position(&go_language)];

	if (!known)
		return;
	struct go_layout layout = *known;
	layout.goid = goid;
	layout.status = status;
	layout.labels = labels;
	set_layout(known, &layout);
}

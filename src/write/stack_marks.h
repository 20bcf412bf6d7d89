// SPDX-License-Identifier: MIT
// stack_marks: what a stack is known for by the names of its functions: it looks a host up, waits
// for a child, allocates. The names are in language_text. Each function is compared but once.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct line;
struct profile;
struct stack;
struct symbols;

enum stack_mark {
	MARK_LOOKUP,
	MARK_CHILD,
	MARK_ENTER,
	MARK_ANSWER,
	MARK_POOL,
	MARK_GIVE,
	MARK_RESULT,
	MARK_COLLECT,
	MARK_COLLECT_ALL,
	MARK_COLLECT_SPARE,
	MARK_ALLOCATE,
	MARK_ASK_COLLECT,
	N_MARKS,
};

struct stack_marks {
	const struct profile *profile; // borrowed
	const struct symbols *symbols; // borrowed
	uint16_t *of_function;         // bits of enum stack_mark, and N_MARKS: they are known
};

void stack_marks_init(struct stack_marks *marks, const struct profile *profile,
                      const struct symbols *symbols);
void stack_marks_deinit(struct stack_marks *marks);

// Returns the outermost function of the stack that has the mark; NULL: none.
const struct line *stack_marks_find(const struct stack_marks *marks, const struct stack *stack,
                                    enum stack_mark mark);

// True if there is one.
bool stack_marks_has(const struct stack_marks *marks, const struct stack *stack,
                     enum stack_mark mark);

// SPDX-License-Identifier: MIT
#include "stack_marks.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "language_text.h"
#include "memory.h"
#include "profile.h"
#include "symbolize.h"
#include "text.h"

// Where each language has its names for a mark.
static const size_t lists[N_MARKS] = {
    [MARK_LOOKUP] = offsetof(struct language_text, lookups),
    [MARK_CHILD] = offsetof(struct language_text, children),
    [MARK_ENTER] = offsetof(struct language_text, enters),
    [MARK_ANSWER] = offsetof(struct language_text, answers),
    [MARK_POOL] = offsetof(struct language_text, pools),
    [MARK_GIVE] = offsetof(struct language_text, gives),
    [MARK_RESULT] = offsetof(struct language_text, results),
    [MARK_COLLECT] = offsetof(struct language_text, collects),
    [MARK_COLLECT_ALL] = offsetof(struct language_text, collects_all),
    [MARK_COLLECT_SPARE] = offsetof(struct language_text, collects_spare),
    [MARK_ALLOCATE] = offsetof(struct language_text, allocates),
    [MARK_ASK_COLLECT] = offsetof(struct language_text, asks_to_collect),
};

void stack_marks_init(struct stack_marks *marks, const struct profile *profile,
                      const struct symbols *symbols)
{
	*marks = (struct stack_marks){
	    .profile = profile,
	    .symbols = symbols,
	    .of_function =
	        memory_alloc_zeroed(symbols->n_functions + 1, sizeof(*marks->of_function)),
	};
}

void stack_marks_deinit(struct stack_marks *marks)
{
	free(marks->of_function);
	*marks = (struct stack_marks){0};
}

static bool fits(const struct function *function, const char *pattern)
{
	const char *at = strchr(pattern, '@');

	if (!at)
		return strstr(function->name, pattern);
	return strncmp(function->name, pattern, (size_t)(at - pattern)) == 0 &&
	       !function->name[at - pattern] && text_ends_with(function->file, at + 1);
}

static bool has_mark(const struct function *function, enum stack_mark mark)
{
	for (size_t i = 0; language_texts[i]; i++) {
		const char *const *names;
		memcpy(&names, (const char *)language_texts[i] + lists[mark], sizeof(names));
		for (; names && *names; names++)
			if (fits(function, *names))
				return true;
	}
	return false;
}

static uint16_t marks_of(const struct stack_marks *marks, uint32_t function)
{
	uint16_t *known = &marks->of_function[function];
	const bool is_known = *known != 0;

	if (is_known)
		return *known;
	for (enum stack_mark mark = 0; mark < N_MARKS; mark++)
		if (has_mark(&marks->symbols->functions[function], mark))
			*known |= (uint16_t)(1 << mark);
	*known |= 1 << N_MARKS;
	return *known;
}

const struct line *stack_marks_find(const struct stack_marks *marks, const struct stack *stack,
                                    enum stack_mark mark)
{
	for (uint32_t i = stack->n_frames; i-- > stack->n_blamed;) {
		const uint32_t id = marks->profile->location_ids[stack->first + i];
		const struct location_lines *lines = &marks->symbols->locations[id];
		for (uint32_t j = lines->count; j-- > 0;) {
			const struct line *line = &marks->symbols->lines[lines->first + j];
			if (marks_of(marks, line->function) >> mark & 1)
				return line;
		}
	}
	return NULL;
}

bool stack_marks_has(const struct stack_marks *marks, const struct stack *stack,
                     enum stack_mark mark)
{
	return stack_marks_find(marks, stack, mark);
}

// SPDX-License-Identifier: MIT
#include "language_text.h"

#include "text.h"

#include <stddef.h>
#include <string.h>

const struct task_words *language_task_words(void)
{
	static const struct task_words none = {.one = "task", .many = "tasks", .id = "task_id"};

	for (size_t i = 0; language_texts[i]; i++)
		if (language_texts[i]->tasks)
			return language_texts[i]->tasks;
	return &none;
}

bool language_text_is_whole_lock(const char *descriptor)
{
	for (size_t i = 0; language_texts[i]; i++) {
		const char *begin = language_texts[i]->whole_lock;
		if (begin && text_begins_with(descriptor, begin))
			return true;
	}
	return false;
}

// SPDX-License-Identifier: MIT
#include "process_title.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "proc.h"
#include "resident.h"
#include "text.h"

enum {
	READ_BYTES = 256,
	MAX_BYTES = 128,    // of a title that is shown
	FIRST_NS = 5000000, // a new process soon has its title
};

static bool is_zero(const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

// Like the kernel, takes arguments that do not end with a NUL for a title, which may then go on in
// the environment. Else it is a title if it is one string only, has a space, and is no path: so it
// is no program without arguments.
char *process_title_parse(const char *bytes, size_t n, size_t n_arguments, char last)
{
	const size_t n_read = n < n_arguments ? n : n_arguments;
	size_t length = strnlen(bytes, n);

	if (!last && length < n_read && !is_zero(bytes + length, n_read - length))
		return NULL;
	while (length > 0 && bytes[length - 1] == ' ')
		length--;
	if (length == 0 || bytes[0] == '/' || !memchr(bytes, ' ', length))
		return NULL;
	return text_clean(bytes, length, MAX_BYTES);
}

// False if its memory cannot be read now.
static bool read_title(int pid, int tid, struct resident *resident, char **ret)
{
	char bytes[READ_BYTES], last = 0;
	struct proc_words words;

	if (!proc_find_words(pid, &words))
		return false;
	const size_t n_arguments = words.arguments_end - words.arguments;
	const size_t n_all = words.environment == words.arguments_end
	                         ? words.environment_end - words.arguments
	                         : n_arguments;
	const size_t n = n_all < sizeof(bytes) ? n_all : sizeof(bytes);
	if (n_arguments == 0 || !resident_read(resident, tid, words.arguments, bytes, n) ||
	    !resident_read(resident, tid, words.arguments_end - 1, &last, 1))
		return false;
	*ret = process_title_parse(bytes, n, n_arguments, last);
	return true;
}

bool process_title_update(struct process_title *title, int pid, int tid, struct resident *resident,
                          int64_t now_ns)
{
	if (now_ns < title->due_ns)
		return false;
	title->age_ns = title->age_ns ? 2 * title->age_ns : FIRST_NS;
	title->due_ns = now_ns + title->age_ns;
	char *text;
	if (!read_title(pid, tid, resident, &text))
		return false;
	const bool is_new = text && (!title->text || strcmp(text, title->text) != 0);
	free(title->text);
	title->text = text;
	return is_new;
}

void process_title_forget(struct process_title *title, int64_t now_ns)
{
	process_title_deinit(title);
	title->due_ns = now_ns + FIRST_NS;
}

void process_title_deinit(struct process_title *title)
{
	free(title->text);
	*title = (struct process_title){0};
}

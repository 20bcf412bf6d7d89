// SPDX-License-Identifier: MIT
#include "frame_name.h"

#include <inttypes.h>
#include <string.h>

#include "labels.h"
#include "language_text.h"
#include "memory.h"
#include "module.h"
#include "syscall_name.h"
#include "text.h"
#include "timeline.h"

char *frame_name_unresolved(const struct module *module, uint64_t address)
{
	const char *name = module_name(module);
	size_t length = strlen(name);

	// "[vdso]" becomes "[vdso+0x123]".
	if (length >= 2 && name[0] == '[' && name[length - 1] == ']') {
		name++;
		length -= 2;
	}
	_cleanup_free_ char *clean = text_clean(name, length, TEXT_UNLIMITED);
	return memory_printf("[%s+0x%" PRIx64 "]", clean, address);
}

char *frame_name_truncated(enum stack_end end)
{
	if (end == STACK_UNSEEN)
		return memory_printf("[%s]", stack_end_name(end));
	return memory_printf("[truncated: %s]", stack_end_name(end));
}

enum stack_end frame_name_stack_end(const struct stack *stack)
{
	if (stack->end == STACK_COMPLETE && stack->n_frames == 0)
		return STACK_NOT_SAMPLED;
	return stack->end;
}

const char *frame_name_descriptor(const struct wait *wait)
{
	return wait->meaning ? wait->meaning : wait->descriptor;
}

char *frame_name_waits_in(const struct wait *wait)
{
	if (wait->syscall != NO_SYSCALL)
		return syscall_name(wait->syscall);
	if (!wait->reason[0])
		return NULL;
	return text_clean(wait->reason, strlen(wait->reason), TEXT_UNLIMITED);
}

char *frame_name_labels(const struct profile *profile, const struct sample *sample)
{
	struct label label = {0};
	char *text = NULL;

	if (sample->labels == LABELS_NONE)
		return NULL;
	const char *at = profile->labels[sample->labels];
	while (labels_next(&at, &label)) {
		_cleanup_free_ char *before = text;
		text = memory_printf("%s%s%s=%s", before ? before : "", before ? ", " : "",
		                     label.key, label.value);
	}
	return text;
}

char *frame_name_label(const char *labels, const char *key)
{
	_cleanup_free_ char *value = labels_find(labels, key);

	return value ? memory_printf("%s=%s", key, value) : NULL;
}

char *frame_name_wait(const struct wait *wait, bool syscalls, size_t i)
{
	const char *frame = wait->frames, *end;

	for (; (end = strchr(frame, '\n')); frame = end + 1)
		if (i-- == 0)
			return memory_printf("%.*s_[k]", (int)(end - frame), frame);
	if (i > 0 || !syscalls || wait->syscall == NO_SYSCALL)
		return NULL;
	const char *descriptor = frame_name_descriptor(wait);
	_cleanup_free_ char *name = syscall_name(wait->syscall);
	return memory_printf("%s%s%s_[k]", name, descriptor[0] ? " " : "", descriptor);
}

const char *frame_name_guess(const struct stack *stack)
{
	switch (stack->guessed) {
	case GUESSED_BY_FRAME_POINTER:
		return "frame-pointer";
	case GUESSED_BY_CODE:
		return "code";
	case 0:
		return NULL;
	default:
		return "code,frame-pointer";
	}
}

const char *frame_name_thread(const struct thread *thread)
{
	return thread->name[0] ? thread->name : "[no name]";
}

char *frame_name_number(const struct thread *thread)
{
	if (!thread->is_task)
		return memory_printf("%d", thread->tid);
	return thread->task_id ? memory_printf("g%" PRIu64, thread->task_id) : memory_strdup("g");
}

char *frame_name_track(const struct profile *profile, const struct thread_spans *spans)
{
	const struct thread *thread = &profile->threads[spans->thread];
	_cleanup_free_ char *number = frame_name_number(thread);
	const char *name = frame_name_thread(thread);

	if (spans->n_tasks > 1)
		return memory_printf("%s (%zu %s)", name, spans->n_tasks,
		                     language_tasks(spans->n_tasks));
	return thread->is_task ? memory_printf("%s %s", name, number) : memory_strdup(name);
}

char *frame_name_process(const struct profile *profile, const struct thread *thread)
{
	const char *name = profile_process_of(profile, thread);

	return memory_printf("%s-%d", name[0] ? name : "[no name]", thread->pid);
}

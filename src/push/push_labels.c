// SPDX-License-Identifier: MIT
#include "push_labels.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "text.h"

enum { MAX_KEY_BYTES = 128 };

void push_labels_deinit(struct push_labels *labels)
{
	for (size_t i = 0; i < labels->count; i++) {
		free(labels->items[i].key);
		free(labels->items[i].value);
	}
	free(labels->items);
	*labels = (struct push_labels){0};
}

static struct push_label *find(const struct push_labels *labels, const char *key)
{
	for (size_t i = 0; i < labels->count; i++)
		if (strcmp(labels->items[i].key, key) == 0)
			return &labels->items[i];
	return NULL;
}

void push_labels_set(struct push_labels *labels, const char *key, const char *value)
{
	struct push_label *label = find(labels, key);

	if (!label) {
		label = array_push(labels->items, labels->count, labels->capacity);
		*label = (struct push_label){.key = memory_strdup(key)};
	}
	free(label->value);
	label->value = text_clean(value, strlen(value), PUSH_MAX_LABEL_BYTES);
}

// Labels of samples: a series' own would take their place.
static bool is_reserved(const char *key, size_t length)
{
	static const char *const names[] = {"state", "kind", "syscall", "thread"};

	for (size_t i = 0; i < array_size(names); i++)
		if (strlen(names[i]) == length && strncmp(names[i], key, length) == 0)
			return true;
	return false;
}

static bool is_key(const char *text, size_t length)
{
	if (length == 0 || length > MAX_KEY_BYTES || isdigit((unsigned char)text[0]) ||
	    strncmp(text, "__", 2) == 0 || is_reserved(text, length))
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isascii(text[i]) || (!isalnum((unsigned char)text[i]) && text[i] != '_'))
			return false;
	return true;
}

bool push_labels_parse(struct push_labels *labels, const char *text)
{
	const size_t length = strcspn(text, "=");

	if (text[length] != '=' || !is_key(text, length))
		return false;
	_cleanup_free_ char *key = memory_strndup(text, length);
	if (labels->count >= PUSH_MAX_LABELS && !find(labels, key))
		return false;
	push_labels_set(labels, key, text + length + 1);
	return true;
}

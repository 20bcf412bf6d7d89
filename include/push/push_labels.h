// SPDX-License-Identifier: MIT
// push_labels: what a profile is of, as servers file it: a few names with their values.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { PUSH_MAX_LABELS = 20, PUSH_MAX_LABEL_BYTES = 2048 };

struct push_label {
	char *key, *value; // owned; the value is clean text (text.h)
};

struct push_labels {
	struct push_label *items;
	size_t count, capacity;
};

void push_labels_deinit(struct push_labels *labels);

// Adds the label, or replaces the one of that name. The value is cleaned and cut.
void push_labels_set(struct push_labels *labels, const char *key, const char *value);

// The same for "KEY=VALUE". False: the key is not one that servers take (letters, digits and
// underscores, not two of them first) or there are too many labels.
bool push_labels_parse(struct push_labels *labels, const char *text);

// The value, owned by the labels; NULL: there is no such label.
const char *push_labels_get(const struct push_labels *labels, const char *key);

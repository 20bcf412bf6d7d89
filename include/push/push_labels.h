// SPDX-License-Identifier: MIT
// push_labels: the names and values by which a server files a profile.
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

// Adds the label, or replaces the one with that key. The value is cleaned and cut.
void push_labels_set(struct push_labels *labels, const char *key, const char *value);

// Does the same for "KEY=VALUE". False if servers would not take the key (it consists of letters,
// digits and underscores, and does not begin with two of these), or if there are too many labels.
bool push_labels_parse(struct push_labels *labels, const char *text);

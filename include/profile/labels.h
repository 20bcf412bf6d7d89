// SPDX-License-Identifier: MIT
// labels: what a sample says of itself besides its stack: keys with values, such as gil=holding.
//
// A set of labels is one text, in which each has its key, a tab, its value and a newline.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct profile;

enum { LABELS_NONE = 0 };

// The key of the label that says why a sample lacks labels.
#define LABELS_LACK "labels"

// Appends a label to *text, which is NULL or the caller's to free. Cleans both parts (text.h), and
// cuts them if they are long. Leaves out a label whose key is empty or already there, and the rest
// of a set that gets too long: the label LABELS_LACK says so.
void labels_add(char **text, const char *key, const char *value);

struct label {
	char *key, *value; // valid until the next call
};

// Reads the next label of a text, and advances *at. Before the first call, zero *label and point
// *at to the text. False if there are no more.
bool labels_next(const char **at, struct label *label);

// Returns the value of the label with that key, a new string, owned by the caller; NULL: the set
// has none.
char *labels_find(const char *text, const char *key);

// True if the set lacks labels, for whatever reason.
bool labels_lack(const char *text);

// Returns the id of the set, new or known; LABELS_NONE if it is NULL or empty. If there are too
// many different sets, returns that of a set which says that the sample's own is left out
// (LABELS_LACK). Copies the text.
uint32_t profile_intern_labels(struct profile *profile, const char *text);

// Gives the set to the thread's next samples, until the next call.
void profile_label_thread(struct profile *profile, uint32_t thread, uint32_t labels);

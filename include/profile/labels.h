// SPDX-License-Identifier: MIT
// labels: what a sample says of itself beside its stack: keys with values, such as gil=holding.
//
// A set of labels is one text, in which each has its key, a tab, its value and a newline.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

enum { LABELS_NONE = 0 };

// The key of the label that tells why a sample lacks labels.
#define LABELS_LACK "labels"

// Appends a label to *text, which is NULL or the caller's to free. Both parts are made clean
// (text.h), and cut where they are long. Later labels of a key that is there are dropped. Of a set
// that gets too long the rest is left out, and the label LABELS_LACK says so.
void labels_add(char **text, const char *key, const char *value);

struct label {
	char *key, *value; // valid until the next call or labels_end
};

// Reads the next label of a text, and advances *at. Before the first call, zero *label and point
// *at to the text. False: there are no more.
bool labels_next(const char **at, struct label *label);
void labels_end(struct label *label);

// True if the set lacks labels, for some reason.
bool labels_lack(const char *text);

// The id of the set, new or known; LABELS_NONE where it is NULL or empty. Where there are too many
// different ones it is that of a set which says that the sample's own is left out (LABELS_LACK).
// Copies the text.
uint32_t profile_intern_labels(struct profile *profile, const char *text);

// Gives the set to the thread's next samples, until the next call.
void profile_label_thread(struct profile *profile, uint32_t thread, uint32_t labels);

// SPDX-License-Identifier: MIT
// top_text: fits text to a terminal's columns.
#pragma once

#include <stdbool.h>

// Cuts the clean text (text.h) to `width` columns, or fills it with spaces, on the left if `right`.
// Characters that change the direction of other text, or have no width, become '_'. The caller
// frees.
char *top_text_fit(const char *text, int width, bool right) __attribute__((returns_nonnull));

// Does the same, but cuts a longer text in the middle, where an ellipsis says so. Spaces that it
// begins with, and a place in parentheses that it ends with, are kept if there is room.
char *top_text_cut(const char *text, int width) __attribute__((returns_nonnull));

// Returns how many columns the text takes.
int top_text_width(const char *text);

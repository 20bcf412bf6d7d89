// SPDX-License-Identifier: MIT
// top_text: text measured in a terminal's columns.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// The clean text (text.h) cut or filled with spaces to `width` columns; the caller frees. What
// would change the direction of other text, or has no width of its own, becomes '_'.
char *top_text_fit(const char *text, int width, bool right) __attribute__((returns_nonnull));

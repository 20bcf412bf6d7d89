// SPDX-License-Identifier: MIT
// top_draw: makes rows of text for the screen of `profiler top`, for a given size.
#pragma once

struct top_ui;

// Returns `height` rows, each of at most `width` columns. The caller frees the array and each row.
char **top_draw_rows(struct top_ui *ui, int width, int height) __attribute__((returns_nonnull));

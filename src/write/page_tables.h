// SPDX-License-Identifier: MIT
// page_tables: what a page says without its script: plain tables of the functions and threads that
// took most of the time.
#pragma once

#include <stdint.h>
#include <stdio.h>

struct page;

// Text with what HTML reads as its own ('<', '&', quotes) escaped; of at most `max_bytes`, more or
// less, whole characters.
void page_put_text(FILE *stream, const char *text, size_t max_bytes);

// `order` is page_tree_order's.
void page_tables_write(const struct page *page, const uint32_t *order, FILE *stream);

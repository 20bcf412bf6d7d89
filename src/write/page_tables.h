// SPDX-License-Identifier: MIT
// page_tables: what a page shows without its script: plain tables of the functions and threads that
// took the most time.
#pragma once

#include <stdint.h>
#include <stdio.h>

struct page;

// Writes text with HTML's own characters ('<', '&', quotes) escaped. Cuts it behind about
// `max_bytes`, never within a character.
void page_put_text(FILE *stream, const char *text, size_t max_bytes);

// Writes the tables; `order` is from page_tree_order.
void page_tables_write(const struct page *page, const uint32_t *order, FILE *stream);

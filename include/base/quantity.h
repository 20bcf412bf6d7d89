// SPDX-License-Identifier: MIT
// quantity: numbers as users write them, with their units.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// A plain decimal number such as 12 or 0.5 at the start of `text`: no sign, no exponent, no hex.
// Returns what follows it, NULL where there is none.
const char *quantity_parse_decimal(const char *text, double *ret);

// A time such as 30, 1.5s, 5sec, 500ms, 2min, 1h30m into nanoseconds > 0; false if it is not one.
// A number without a unit is seconds.
bool quantity_parse_time(const char *text, int64_t *ret_ns);

// A size such as 4096, 64K, 20M or 1.5G (powers of 1024) into bytes > 0; false if it is not one.
bool quantity_parse_size(const char *text, uint64_t *ret_bytes);

// A whole number from 1 to max, digits only.
bool quantity_parse_count(const char *text, long max, long *ret);

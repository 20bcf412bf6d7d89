// SPDX-License-Identifier: MIT
// option_rows: every option: how its value is read, and what --help says of it.
#pragma once

struct option_table;

extern const struct option_table option_rows;

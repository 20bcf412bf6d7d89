// SPDX-License-Identifier: MIT
// option_rows: the options of several verbs: how each value is parsed, and what --help says of it.
#pragma once

struct option_table;

extern const struct option_table option_rows;

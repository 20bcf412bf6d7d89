// SPDX-License-Identifier: MIT
// write_explain: says in a few sentences what a profile shows (profiler explain).
//
// What samples do is sorted into the causes of a table of rules; each rule says from which share on
// it is worth telling. Shares are of the time in which threads were not idle.
#pragma once

extern const struct writer writer_explain; // text
extern const struct writer writer_explain_markdown;
extern const struct writer writer_explain_json; // profiler-explain(1) has the keys

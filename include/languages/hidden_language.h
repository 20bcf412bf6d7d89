// SPDX-License-Identifier: MIT
// hidden_language: finds in stacks the languages whose own functions are not shown, and tells what
// would show them.
#pragma once

struct modules;
struct profile;
struct stack;
struct symbols;

enum { HIDDEN_LANGUAGES_MAX = 32, HIDDEN_NONE = -1 };

// Returns the number (below HIDDEN_LANGUAGES_MAX) of the language that has functions in the stack,
// of which none is shown; HIDDEN_NONE: there is none, or it is not known which one.
int hidden_language_of(const struct profile *profile, const struct modules *modules,
                       const struct symbols *symbols, const struct stack *stack);

// Returns what is not shown, as in "JavaScript functions", and what to do, for a message.
const char *hidden_language_what(int language);
const char *hidden_language_remedy(int language);

// Returns a line if the process has tasks that are not shown; NULL: it has none.
const char *hidden_language_tasks(const struct modules *modules);

// SPDX-License-Identifier: MIT
// compiled_symbol: names of functions of Python that Cython or mypyc has made C, or C++, of.
#pragma once

#include <stdbool.h>

// Returns the name that the function has in Python, as in "shop.till.Till.pay", and what a compiler
// has put behind the symbol's: `[clone .cold]`. The symbol is C's, or demangled C++'s. Owned by the
// caller; NULL: it is none of theirs. Takes any text.
char *compiled_symbol_name(const char *symbol);

// Of the body of a generator, whose symbol tells no name: returns what the symbol of the function
// begins with that makes such generators. Owned by the caller; NULL: it is no such body.
char *compiled_symbol_generator(const char *symbol);

// True if the symbol is of the function whose symbol begins so.
bool compiled_symbol_is_maker(const char *symbol, const char *beginning);

// True if the outer function only takes a call's arguments apart for the inner one, so that both
// have the same name in Python.
bool compiled_symbol_wraps(const char *outer, const char *inner);

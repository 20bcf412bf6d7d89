// SPDX-License-Identifier: MIT
// short_name: shortens a function's name to what its author calls it, for tables and boxes.
#pragma once

// Returns the name without template arguments, parameters and the returned type:
// "shop::Cache::put" for "void shop::Cache<int, std::less<int> >::put<long>(long) const",
// "Map::next" for Rust's "<Map<I, F> as Iterator>::next", "fib (srv.js:3)" for "JS:*fib
// /app/srv.js:3:13". Names of other languages, such as Go's "net/http.(*conn).serve", stay as they
// are, and so does a name that does not fit the pattern. A new string, owned by the caller.
char *short_name(const char *name) __attribute__((returns_nonnull));

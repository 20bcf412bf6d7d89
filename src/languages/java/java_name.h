// SPDX-License-Identifier: MIT
// java_name: how Java's names are shown.
#pragma once

// Returns "package.Class.method" for a class as HotSpot names it ("package/Class"). Of a hidden
// class (a lambda's), the number that tells it from others of the same origin is left out: each run
// has other ones. The caller frees it.
char *java_name_method(const char *class, const char *method);

// Returns "package.Class" alike.
char *java_name_class(const char *class);

// Returns how a lock or another synchronizer is shown that is of a class ("package.Class"): those
// of java.util.concurrent by what the program calls them ("ReentrantLock"). The caller frees it.
char *java_name_lock(const char *class);

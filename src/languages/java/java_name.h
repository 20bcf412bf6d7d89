// SPDX-License-Identifier: MIT
// java_name: how Java's names are shown.
#pragma once

// Returns "package.Class.method" for a class as HotSpot names it ("package/Class"). The number of a
// hidden class (a lambda's) is left out, as it differs from run to run. The caller frees it.
char *java_name_method(const char *class, const char *method);

// Returns "package.Class" likewise.
char *java_name_class(const char *class);

// Returns how a lock or another synchronizer of the class ("package.Class") is shown: those of
// java.util.concurrent by the name that programs use ("ReentrantLock"). The caller frees it.
char *java_name_lock(const char *class);

// SPDX-License-Identifier: MIT
// languages: the languages that are known, each in a folder of its own.
#pragma once

#include "language.h"
#include "language_tasks.h"

extern const struct language beam_language;
extern const struct language ghc_language;
extern const struct language go_language;
extern const struct language_tasks go_tasks; // its goroutines
extern const struct language java_language;
extern const struct language luajit_language;
extern const struct language php_language;
extern const struct language python_language;

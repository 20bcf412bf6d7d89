// SPDX-License-Identifier: MIT
// languages: the languages that are known, each in a folder of its own.
#pragma once

#include "language.h"
#include "language_tasks.h"
#include "language_text.h"

extern const struct language beam_language;
extern const struct language ghc_language;
extern const struct language go_language;
extern const struct language_tasks go_tasks; // its goroutines
extern const struct language java_language;
extern const struct language luajit_language;
extern const struct language php_language;
extern const struct language python_language;
extern const struct language v8_language;

extern const struct language_text beam_text;
extern const struct language_text go_text;
extern const struct language_text java_text;
extern const struct language_text luajit_text;
extern const struct language_text php_text;
extern const struct language_text python_text;
extern const struct language_text v8_text;
extern const struct language_text ruby_text, native_text, other_text; // other_texts

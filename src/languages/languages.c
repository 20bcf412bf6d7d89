// SPDX-License-Identifier: MIT
#include "languages.h"

// They are asked in this order.
const struct language *const languages[LANGUAGES_MAX] = {
    &python_language, &go_language,     &beam_language, &php_language,
    &java_language,   &luajit_language, &ghc_language,  &v8_language,
};

const struct language_text *const language_texts[] = {
    &python_text, &go_text,    &beam_text, &php_text,    &java_text, &luajit_text,
    &ruby_text,   &other_text, &v8_text,   &native_text, NULL,
};

// SPDX-License-Identifier: MIT
#include "language.h"

#include "beam_language.h"
#include "ghc_language.h"
#include "go_language.h"
#include "java_language.h"
#include "luajit_language.h"
#include "php_language.h"
#include "python_language.h"

// They are asked in this order.
const struct language *const languages[LANGUAGES_MAX] = {
    &python_language, &go_language,     &beam_language, &php_language,
    &java_language,   &luajit_language, &ghc_language,
};

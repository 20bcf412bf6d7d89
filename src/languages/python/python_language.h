// SPDX-License-Identifier: MIT
// python: CPython's frames, names, tasks and lock.
#pragma once

#include "language.h"

extern const struct language python_language;

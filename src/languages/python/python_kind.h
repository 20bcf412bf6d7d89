// SPDX-License-Identifier: MIT
// python_kind: CPython as a kind of runtime.
#pragma once

#include "runtime_kind.h"

extern const struct runtime_kind python_kind;

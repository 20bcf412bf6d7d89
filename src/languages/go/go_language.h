// SPDX-License-Identifier: MIT
// go: walks the stacks of Go's threads and goroutines, which its runtime changes.
#pragma once

#include "language.h"

extern const struct language go_language;

// SPDX-License-Identifier: MIT
// go: walks the stacks of Go's threads and goroutines, which its runtime changes.
#pragma once

#include "language.h"
#include "language_tasks.h"

extern const struct language go_language;
extern const struct language_tasks go_tasks; // its goroutines

// SPDX-License-Identifier: MIT
// go_tasks: goroutines, as the sampler reads them.
#pragma once

#include "language_tasks.h"

extern const struct language_tasks go_tasks;

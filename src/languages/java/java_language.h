// SPDX-License-Identifier: MIT
// java_language: HotSpot as a language (language.h).
#pragma once

#include "language.h"

extern const struct language java_language;

// SPDX-License-Identifier: MIT
// hotspot: unwinds the code that HotSpot, OpenJDK's virtual machine, makes, by the look of it alone
// (hotspot_code.h).
#pragma once

#include "language.h"

extern const struct language hotspot_language;

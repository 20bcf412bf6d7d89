// SPDX-License-Identifier: MIT
// java_fields: where the fields of a Java class are in its objects.
//
// HotSpot keeps them in an array of six numbers each up to JDK 20 (fieldInfo.hpp), later in a
// packed stream.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "java_layout.h"
#include "java_memory.h"

// True if the JDK says where its classes keep their fields.
bool java_fields_are_known(const struct java_layout *layout);

// Returns the offset of the field in objects of the class, which declares it itself; JAVA_NO_FIELD:
// it has none of that name.
int32_t java_fields_find(const struct java_layout *layout, const struct java_memory *memory,
                         uint64_t class, const char *name);

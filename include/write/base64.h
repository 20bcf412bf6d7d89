// SPDX-License-Identifier: MIT
// base64: writes bytes as text (RFC 4648, section 4).
#pragma once

#include <stddef.h>
#include <stdio.h>

// Writes all of the bytes, padded to whole groups. Errors stay in the stream's indicator.
void base64_write(FILE *stream, const void *bytes, size_t size);

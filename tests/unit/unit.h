// SPDX-License-Identifier: MIT
// unit: cmocka, and the headers that its own needs before it.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

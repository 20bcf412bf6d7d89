// SPDX-License-Identifier: MIT
// php: unwinds the code that PHP's JIT makes (opcache.jit), for a virtual machine as GCC compiles
// it.
//
// Such code has no tables, unless opcache.jit_debug asks for them. It runs in the frame of
// execute_ex, which keeps the next operation in a register, and leaves by a jump to that
// operation's handler, also in execute_ex. So the caller is execute_ex's, by its table's row where
// it does the same (Zend/zend_vm_execute.skl, ZEND_VM_KIND_HYBRID;
// ext/opcache/jit/zend_jit_x86.dasc).
#pragma once

#include "language.h"

extern const struct language php_language;

// SPDX-License-Identifier: MIT
// stack_limit: how large this process's own stack may become (ulimit -s).
#pragma once

struct error;

// Raises the limit to what is needed, where it is lower. An error: that is not allowed. The caller
// owns the error.
struct error *stack_limit_raise(void);

// Sets the limit to what it was before, in a child that becomes another program.
void stack_limit_restore(void);

// SPDX-License-Identifier: MIT
// cfi: reads unwind rules from a module's call frame information (.eh_frame, .debug_frame) with
// libdw.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct module;
struct rule;

// Finds the rule for the address (in the module's file). False if the module has none for it. On
// success the caller owns *ret (rule_deinit). Call it in guarded work (module_guard).
bool cfi_find_rule(struct module *module, uint64_t address, struct rule *ret);

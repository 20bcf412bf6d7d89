// SPDX-License-Identifier: MIT
// rule_step: goes from one frame's registers to its caller's by a rule.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "profile.h"

struct registers;
struct rule;
struct snapshot;

// Replaces the frame's registers by its caller's. Returns STACK_COMPLETE if it did, and otherwise
// why not; the registers are then unchanged. `is_return`: the frame's pc is a return address.
enum stack_end rule_step(const struct rule *rule, bool is_return, const struct snapshot *snapshot,
                         struct registers *registers);

// Returns the address of the memory that the copy lacked, after rule_step has returned
// STACK_UNREADABLE or STACK_NOT_COPIED; 0: not known.
uint64_t rule_missing(const struct rule *rule, const struct registers *registers,
                      const struct snapshot *snapshot);

// Finds the CFA that the rule gives the frame. False if it is not known.
bool rule_cfa(const struct rule *rule, const struct registers *registers,
              const struct snapshot *snapshot, uint64_t *ret);

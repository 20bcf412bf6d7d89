// SPDX-License-Identifier: MIT
// garbage: finds which samples collect garbage, in threads of the language's own or while they
// allocate, and how much of the CPU time that is.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "explain.h"

struct sample;

// True if the sample, of a thread that computes, collects garbage.
bool garbage_is_collected(const struct explanation *explanation, const struct sample *sample);

// True if the sample shows who makes garbage, or has it collected.
bool garbage_is_made(const struct explanation *explanation, const struct sample *sample);

// Returns how, a part of a sentence.
const char *garbage_made_text(const struct explanation *explanation, const struct sample *sample);

// Returns how that is told: a fault is a collector that has to look at all memory again and again,
// in time that the program needs. garbage_find comes first.
enum rule garbage_rule(const struct explanation *explanation);

// Adds up what collects (`rules`: of each sample). If it is little, it is a part of computing, and
// its rules are made so.
void garbage_find(struct explanation *explanation, uint8_t *rules);

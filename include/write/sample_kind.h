// SPDX-License-Identifier: MIT
// sample_kind: finds the kinds (wait_kind.h) of a profile's samples from the names of their
// functions.
#pragma once

#include <stdint.h>

#include "wait_kind.h"

struct profile;
struct sample;
struct symbols;

struct sample_kinds {
	const struct profile *profile; // borrowed
	const struct symbols *symbols; // borrowed
	uint8_t *name_classes;         // enum wait_name, of each function
};

void sample_kinds_init(struct sample_kinds *kinds, const struct profile *profile,
                       const struct symbols *symbols);
void sample_kinds_deinit(struct sample_kinds *kinds);

enum wait_kind sample_kind(const struct sample_kinds *kinds, const struct sample *sample);

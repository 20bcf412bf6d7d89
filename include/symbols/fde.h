// SPDX-License-Identifier: MIT
// fde: finds the range of code that an address lies in, with the sorted table of .eh_frame_hdr, or
// with .eh_frame itself if there is no such table.
//
// Format: Linux Standard Base, Core specification, 10.6 (Exception Frames).
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct module;

// Finds the range of the frame description entry that holds the address (in the module's file).
// False if there is none, or it is not of the kind that linkers make. Call it in guarded work.
bool fde_find(struct module *module, uint64_t address, uint64_t *ret_start, uint64_t *ret_end);

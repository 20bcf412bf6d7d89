// SPDX-License-Identifier: MIT
// waits: a profile's table of what threads wait in, without double ones and bounded.
#pragma once

struct profile;

// Adds WAIT_NONE as the first wait, if there is none yet, so that each sample's wait exists.
void waits_add_none(struct profile *profile);

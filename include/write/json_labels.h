// SPDX-License-Identifier: MIT
// json_labels: writes a sample's labels as a JSON object.
#pragma once

#include <stdint.h>

struct json;
struct profile;

// Writes the key "labels" with the set's keys and values.
void json_labels_write(struct json *json, const struct profile *profile, uint32_t labels);

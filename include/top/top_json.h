// SPDX-License-Identifier: MIT
// top_json: writes a window as a JSON object on one line.
#pragma once

#include <stdio.h>

struct recording;
struct top_model;

void top_json_write(const struct top_model *model, const struct recording *recording, FILE *stream);

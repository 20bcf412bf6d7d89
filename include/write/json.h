// SPDX-License-Identifier: MIT
// json: writes a JSON text (RFC 8259) value by value, without a tree in memory.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct profile;

struct json {
	FILE *stream; // borrowed; its errors stay in its indicator
	bool comma;   // a value stands before the next one
};

// Begins and ends an object or array: '{', '}', '[' or ']'.
void json_open(struct json *json, char bracket);
void json_close(struct json *json, char bracket);

// Writes the key of the value that comes next.
void json_key(struct json *json, const char *key);

// Writes UTF-8, as text_clean leaves it; escapes quotes, backslashes and control characters.
void json_string(struct json *json, const char *string);

void json_int(struct json *json, int64_t value);
void json_bool(struct json *json, bool value);
void json_null(struct json *json);

// Writes a time in nanoseconds exactly, in units of `unit_ns`: 10^3, 10^6 or 10^9 of them.
void json_time(struct json *json, int64_t ns, int64_t unit_ns);

// Writes a key with its value.
void json_key_string(struct json *json, const char *key, const char *string);
void json_key_clean(struct json *json, const char *key, const char *bytes); // text_clean
void json_key_int(struct json *json, const char *key, int64_t value);
void json_key_bool(struct json *json, const char *key, bool value);
void json_key_open(struct json *json, const char *key, char bracket);

// Writes the key "labels" with the keys and values of a profile's set of labels, as an object.
void json_labels_write(struct json *json, const struct profile *profile, uint32_t labels);

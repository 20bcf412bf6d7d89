// SPDX-License-Identifier: MIT
// What the fuzzing harnesses share. Each fuzz_X.c is a libFuzzer target for one parser of what a
// profiled process can make up; see meson.build on how they run.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// The input, taken piece by piece; zeros after its end.
struct input {
	const uint8_t *data;
	size_t left;
};

static inline void input_take(struct input *input, void *ret, size_t size)
{
	const size_t n = size < input->left ? size : input->left;

	memset(ret, 0, size);
	memcpy(ret, input->data, n);
	input->data += n;
	input->left -= n;
}

static inline uint8_t input_u8(struct input *input)
{
	uint8_t value;

	input_take(input, &value, sizeof(value));
	return value;
}

static inline uint32_t input_u32(struct input *input)
{
	uint32_t value;

	input_take(input, &value, sizeof(value));
	return value;
}

static inline uint64_t input_u64(struct input *input)
{
	uint64_t value;

	input_take(input, &value, sizeof(value));
	return value;
}

// A finding.
static inline void expect(bool condition)
{
	if (!condition)
		abort();
}

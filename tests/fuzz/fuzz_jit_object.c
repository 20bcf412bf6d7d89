// SPDX-License-Identifier: MIT
// Object files that a target has in its memory, placed where it says.
#include "fuzz.h"
#include "jit_object.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *bytes = memory_alloc(size + JIT_OBJECT_MORE_BYTES);

	memcpy(bytes, data, size);
	const size_t placed = jit_object_place(bytes, size);
	expect(placed == 0 || (placed >= size && placed <= size + JIT_OBJECT_MORE_BYTES));
	return 0;
}

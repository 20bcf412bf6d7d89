// SPDX-License-Identifier: MIT
// Names: cleaning and demangling.
#include "demangle.h"
#include "fuzz.h"
#include "memory.h"
#include "text.h"

static void clean(const char *bytes, size_t size, size_t most)
{
	_cleanup_free_ char *text = text_clean(bytes, size, most);
	const size_t length = strlen(text);

	expect(length <= most);
	expect(text_is_clean(text, length));
	for (size_t i = 0; i < length; i++)
		expect((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	_cleanup_free_ char *name = memory_strndup(bytes, size);
	_cleanup_free_ char *text = demangle_or_copy(name);

	clean(bytes, size, TEXT_UNLIMITED);
	clean(bytes, size, size ? data[0] : 0);
	clean(text, strlen(text), 16384);
	if (strlen(name) > DEMANGLE_MAX_INPUT_BYTES)
		expect(demangle(name) == NULL);
	return 0;
}

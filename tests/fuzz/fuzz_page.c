// SPDX-License-Identifier: MIT
// Pages of what other profilers wrote: folded stacks and profiles of pprof's. The first byte says
// which.
#include <stdio.h>

#include "error.h"
#include "fuzz.h"
#include "memory.h"
#include "write_html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	const bool is_pprof = input_u8(&input) & 1;
	char *text = NULL;
	size_t n = 0;
	FILE *stream = open_memstream(&text, &n);
	uint8_t *bytes = memory_alloc(input.left + 1);

	memcpy(bytes, input.data, input.left);
	struct error *error =
	    is_pprof ? write_html_pprof("title", bytes, input.left, stream)
	             : write_html_folded("title", (const char *)bytes, input.left, stream);
	fclose(stream);
	expect(error || strstr(text, "</html>"));
	error_destroy(error);
	free(bytes);
	free(text);
	return 0;
}

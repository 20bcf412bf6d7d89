// SPDX-License-Identifier: MIT
// Pages of what other profilers wrote: folded stacks and profiles of pprof's. The first byte says
// which.
#include <stdio.h>

#include "error.h"
#include "fuzz.h"
#include "memory.h"
#include "write_html.h"

// A text, given in pieces of about `step` bytes.
struct text {
	const char *at, *end;
	size_t step;
};

static struct error *next_lines(void *context, const char **ret, size_t *ret_size)
{
	struct text *text = context;
	const char *from =
	    text->end - text->at > (ptrdiff_t)text->step ? text->at + text->step : text->end;
	const char *newline = memchr(from, '\n', text->end - from);

	*ret = text->at;
	text->at = newline ? newline + 1 : text->end;
	*ret_size = text->at - *ret;
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	const uint8_t first = input_u8(&input);
	const bool is_pprof = first & 1;
	char *text = NULL;
	size_t n = 0;
	FILE *stream = open_memstream(&text, &n);
	uint8_t *bytes = memory_alloc(input.left + 1);

	memcpy(bytes, input.data, input.left);
	struct text lines = {(char *)bytes, (char *)bytes + input.left, first / 2};
	struct error *error = is_pprof
	                          ? write_html_pprof("name", "title", bytes, input.left, stream)
	                          : write_html_folded("name", "title", next_lines, &lines, stream);
	fclose(stream);
	expect(error || strstr(text, "</html>"));
	error_destroy(error);
	free(bytes);
	free(text);
	return 0;
}

// SPDX-License-Identifier: MIT
// Two folded profiles, with a NUL between them, compared.
#include <stdio.h>

#include "diff_folded.h"
#include "error.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const size_t a_size = size ? strnlen(text, size) : 0;
	const size_t b_start = a_size < size ? a_size + 1 : size;
	char *output = NULL;
	uint64_t n_bad;
	size_t output_size;

	for (int normalize = 0; normalize < 2; normalize++) {
		FILE *stream = open_memstream(&output, &output_size);
		expect(stream != NULL);
		error_destroy(
		    diff_folded(&(struct folded_text){"a", text, a_size},
		                &(struct folded_text){"b", text + b_start, size - b_start},
		                normalize, stream, &n_bad));
		fclose(stream);
		// Each stack once, with two counts of at most 20 digits.
		expect(output_size <= size + 44 * (size / 3 + 1));
		free(output);
	}
	return 0;
}

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

	const struct folded_text texts[] = {{"a", text, a_size},
	                                    {"b", text + b_start, size - b_start}};

	for (int normalize = 0; normalize < 2; normalize++) {
		const struct folded_diff diff = {
		    .before = {&texts[0], 1}, .after = {&texts[1], 1}, .normalize = normalize};
		FILE *stream = open_memstream(&output, &output_size);
		expect(stream != NULL);
		error_destroy(diff_folded(&diff, stream, &n_bad));
		fclose(stream);
		// Each stack once, with two counts of at most 20 digits.
		expect(output_size <= size + 44 * (size / 3 + 1));
		free(output);
	}
	return 0;
}

// SPDX-License-Identifier: MIT
#include "writer.h"

#include <string.h>

#include "memory.h"
#include "text.h"

// The name alone: a recording is written while sampling goes on (record_writer.h).
const struct writer writer_record = {
    .name = "record",
    .suffixes = (const char *const[]){".wprof", NULL},
    .default_suffix = ".wprof",
    .binary = true,
    .next_command = "profiler view %s",
};

// The formats. To add one, add a file and a line here.
static const struct writer *const writers[] = {
    &writer_folded,     &writer_pprof,   &writer_html,   &writer_record,
    &writer_speedscope, &writer_firefox, &writer_chrome, &writer_sentry,
};

const struct writer *writer_by_name(const char *name)
{
	for (size_t i = 0; i < array_size(writers); i++)
		if (strcmp(writers[i]->name, name) == 0)
			return writers[i];
	return NULL;
}

const struct writer *writer_by_file_name(const char *file_name)
{
	for (size_t i = 0; i < array_size(writers); i++)
		for (const char *const *suffix = writers[i]->suffixes; *suffix; suffix++)
			if (text_ends_with(file_name, *suffix))
				return writers[i];
	return NULL;
}

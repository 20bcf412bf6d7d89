// SPDX-License-Identifier: MIT
#include "push_command.h"

#include <stdlib.h>

#include "error.h"
#include "memory.h"
#include "options.h"
#include "push_counts.h"
#include "recording.h"
#include "symbolize.h"
#include "uploader.h"
#include "writer.h"

static struct error *write_recording(struct recording *recording, FILE *stream)
{
	const char *const comments[] = {recording->comment, NULL};
	const struct symbolize_options names = {.inlines = true};

	recording_replay(recording);
	recording_find_names(recording, NULL, &names);
	return writer_pprof.write(
	    &(struct report){
	        .profile = &recording->profile,
	        .modules = &recording->modules,
	        .symbols = &recording->symbols,
	        .comments = comments,
	        .pid = recording->pid,
	        .process_roots = recording->children,
	    },
	    stream);
}

// A recording as pprof, for the uploader.
static struct error *convert(const char *name, uint8_t *bytes, size_t size, uint8_t **ret,
                             size_t *ret_size)
{
	struct recording recording;
	char *text = NULL;
	struct error *error = recording_open_bytes(name, bytes, size, &recording);

	if (error)
		return error;
	FILE *stream = open_memstream(&text, ret_size);
	error = stream ? write_recording(&recording, stream)
	               : error_create(EXIT_STATUS_OUTPUT, "%s: no memory for it", name);
	if (stream)
		fclose(stream);
	recording_deinit(&recording);
	if (error)
		free(text);
	else
		*ret = (uint8_t *)text;
	return error;
}

struct error *push_command(const struct options *options)
{
	const struct push_options *push = &options->push;
	const char *keys[PUSH_MAX_KEYS + 1];
	struct push_counts counts = {0};

	return uploader_run(&(struct uploader){
	    .wishes = push_options_wishes(push, keys),
	    .paths = push->paths,
	    .header_file = push->header_file,
	    .ca_file = push->ca_file,
	    .spool_bytes = push->spool_bytes ? push->spool_bytes : PUSH_SPOOL_BYTES,
	    .follows = push->follow,
	    .removes = push->follow || push->remove,
	    .dry = push->dry,
	    .quiet = options->quiet,
	    .counts = &counts,
	    .convert = convert,
	});
}

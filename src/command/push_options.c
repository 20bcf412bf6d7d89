// SPDX-License-Identifier: MIT
#include "push_options.h"

#include <string.h>

#include "clock.h"
#include "error.h"
#include "memory.h"
#include "option_table.h"
#include "options.h"
#include "push_headers.h"
#include "push_parts.h"
#include "quantity.h"
#include "verb.h"
#include "writer.h"

#define EVERY_NS (15 * NS_PER_SECOND)

enum { MIN_SPOOL_BYTES = 1 << 20, DEFAULT_KEYS = 1 };

// The labels of samples that may be sent; each of them has few values, but for thread's.
static const char *const keys[PUSH_MAX_KEYS] = {"state", "kind", "syscall", "thread"};

// clang-format off
#define FLAG(name, field, text)                                                                    \
	{.long_name = (name), .help = (text), .flag_offset = offsetof(struct options, push.field), \
	 .flag_value = true}

static const struct option_row own_rows[] = {
	{.help = "What is pushed:", .verbs = FOR_PUSH},
	FLAG("dry-run", dry, "print what would be sent, and send nothing"),
	FLAG("follow", follow, "wait for new files, send and delete them, until Ctrl-C"),
	FLAG("remove", remove, "delete files that were sent or that the server rejects"),
};
// clang-format on

const struct option_table push_rows = {.rows = own_rows, .n_rows = array_size(own_rows)};

struct error *push_parse_url(struct options *options, const char *value)
{
	destination_deinit(&options->push.destination);
	return destination_parse(value, &options->push.destination);
}

struct error *push_parse_label(struct options *options, const char *value)
{
	if (push_labels_parse(&options->push.labels, value))
		return NULL;
	return option_error(
	    "--label: give up to %d such as region=eu-1: letters, digits and '_' before the '='; "
	    "state, kind, syscall and thread are the samples' own",
	    PUSH_MAX_LABELS);
}

struct error *push_parse_service(struct options *options, const char *value)
{
	if (!*value)
		return option_error("--service: the name is empty: give one");
	push_labels_set(&options->push.labels, "service_name", value);
	return NULL;
}

static unsigned int key_bit(const char *name, size_t length)
{
	for (unsigned int i = 0; i < PUSH_MAX_KEYS; i++)
		if (strlen(keys[i]) == length && strncmp(keys[i], name, length) == 0)
			return 1u << i;
	return 0;
}

struct error *push_parse_keys(struct options *options, const char *value)
{
	unsigned int bits = 0;

	for (const char *name = value;; name++) {
		const size_t length = strcspn(name, ",");
		const unsigned int bit = key_bit(name, length);
		if (!bit)
			return option_error("--push-labels: '%s' is not a list of labels: give "
			                    "some of state,kind,syscall,thread",
			                    value);
		bits |= bit;
		name += length;
		if (*name == '\0')
			break;
	}
	options->push.keys = bits;
	return NULL;
}

struct error *push_parse_header_file(struct options *options, const char *value)
{
	struct push_headers headers;
	struct error *error = push_headers_read(value, &headers);

	if (error)
		return error;
	push_headers_deinit(&headers);
	options->push.header_file = value;
	return NULL;
}

struct error *push_parse_ca(struct options *options, const char *value)
{
	if (access(value, R_OK) != 0)
		return option_error("--push-ca: the file '%s' cannot be read", value);
	options->push.ca_file = value;
	return NULL;
}

struct error *push_parse_spool_size(struct options *options, const char *value)
{
	if (quantity_parse_size(value, &options->push.spool_bytes) &&
	    options->push.spool_bytes >= MIN_SPOOL_BYTES)
		return NULL;
	return option_error("--spool-size: '%s' is not a size of at least 1M, such as 64M", value);
}

struct error *push_take_word(struct options *options, const char *word)
{
	struct push_options *push = &options->push;

	if (strstr(word, "://") && !push->destination.url)
		return push_parse_url(options, word);
	push->paths = memory_grow(push->paths, &push->paths_capacity, push->n_paths + 2,
	                          sizeof(*push->paths));
	push->paths[push->n_paths++] = word;
	push->paths[push->n_paths] = NULL;
	return NULL;
}

struct error *push_check(struct options *options)
{
	const struct push_options *push = &options->push;

	if (!push->destination.url)
		return option_error("push: give a server and files: profiler push http://HOST:4040 "
		                    "FILE; to run a command of that name: profiler -- push");
	if (push->n_paths == 0)
		return option_error(
		    "push: give a file or a directory: profiler push http://HOST:4040 FILE");
	if (push->dry && (push->follow || push->remove))
		return option_error("--dry-run sends nothing: leave out --follow and --remove");
	return NULL;
}

void push_set_defaults(struct options *options)
{
	if (!options->every_ns && !options->ring_ns)
		options->every_ns = EVERY_NS;
	if (!options->writer)
		options->writer = &writer_pprof;
}

struct error *push_check_sampling(const struct options *options)
{
	const struct push_options *push = &options->push;

	if (!push->destination.url && (push->labels.count || push->keys || push->header_file ||
	                               push->ca_file || push->spool_bytes))
		return option_error("--label, --service, --spool-size and --push-... need --push");
	if (push->destination.url && options->writer != &writer_pprof)
		return option_error("--push sends pprof: leave out --format");
	if (push->destination.url && options->keep)
		return option_error(
		    "--push deletes files once they are sent: use --spool-size instead of --keep");
	if (push->destination.url && options->waits_ns)
		return option_error("--waits covers the whole run: leave out --push");
	return NULL;
}

void push_options_deinit(struct push_options *push)
{
	destination_deinit(&push->destination);
	push_labels_deinit(&push->labels);
	free(push->paths);
	push->paths = NULL;
}

struct push_wishes push_options_wishes(const struct push_options *push,
                                       const char *ret_keys[PUSH_MAX_KEYS + 1])
{
	const unsigned int bits = push->keys ? push->keys : DEFAULT_KEYS;
	size_t n = 0;

	for (unsigned int i = 0; i < PUSH_MAX_KEYS; i++)
		if (bits & 1u << i)
			ret_keys[n++] = keys[i];
	ret_keys[n] = NULL;
	return (struct push_wishes){
	    .destination = &push->destination, .labels = &push->labels, .keys = ret_keys};
}

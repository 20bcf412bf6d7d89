// SPDX-License-Identifier: MIT
// push_options: where profiles are pushed to and how: `profiler push`, and what --push shares with
// it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "destination.h"
#include "push_labels.h"

struct error;
struct option_table;
struct options;

enum { PUSH_SPOOL_BYTES = 64 << 20 }; // default

struct push_options {
	struct destination destination; // url NULL: none was given
	struct push_labels labels;      // the service among them
	unsigned int keys;              // --push-labels: bits; 0: the default
	const char *header_file, *ca_file;
	uint64_t spool_bytes; // 0: the default
	const char **paths;   // push: files and directories, NULL-terminated
	size_t n_paths, paths_capacity;
	bool dry, follow, remove;
};

// The options of this verb alone.
extern const struct option_table push_rows;

// For struct verb: push_take_word takes a server, file or directory; push_check checks that nothing
// is missing.
struct error *push_take_word(struct options *options, const char *word);
struct error *push_check(struct options *options);

// Parse the values of options that push shares with sampling.
struct error *push_parse_url(struct options *options, const char *value);
struct error *push_parse_label(struct options *options, const char *value);
struct error *push_parse_service(struct options *options, const char *value);
struct error *push_parse_keys(struct options *options, const char *value);
struct error *push_parse_header_file(struct options *options, const char *value);
struct error *push_parse_ca(struct options *options, const char *value);
struct error *push_parse_spool_size(struct options *options, const char *value);

// For sampling with --push: windows, written as pprof, are the default.
void push_set_defaults(struct options *options);

// For sampling: returns an error if options for --push do not go together.
struct error *push_check_sampling(const struct options *options);

void push_options_deinit(struct push_options *push);

// Returns what the options ask of an upload. The result borrows *keys, which is filled.
enum { PUSH_MAX_KEYS = 4 };
struct push_wishes push_options_wishes(const struct push_options *push,
                                       const char *keys[PUSH_MAX_KEYS + 1]);

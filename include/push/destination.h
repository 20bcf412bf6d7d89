// SPDX-License-Identifier: MIT
// destination: where profiles are pushed to: a server's address, whose scheme says what the server
// takes.
//
//     http(s)://         Grafana Pyroscope, by push.v1
//     parca+http(s)://   Parca, by WriteRaw
//     otlp+http(s)://    servers that take OpenTelemetry's protocol for profiles, version 1.10
//     pprof+http(s)://   servers that take a pprof file as a request's body
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct error;
struct pprof_file;
struct pprof_row;
struct pprof_rows;
struct push_labels;

// One series of a window, as one request carries it; borrowed.
struct push_series {
	const struct push_labels *labels;
	const struct pprof_rows *rows;
	size_t from, to; // the rows in it: from `from` to before `to`
	// The row whose labels are the series' labels, too; NULL: samples keep their labels.
	const struct pprof_row *row;
	const struct pprof_file *file; // the rows as pprof
	const char *name;              // of the type of sample that is shown by default
	const char *id;                // a UUID, the same at each try
};

// What a kind of server takes.
struct push_format {
	const char *scheme;         // what stands before http:// or https://
	const char *path;           // for an address without one
	const char *content_type;   // of the body
	bool takes_files;           // sends files as they are: nothing below is used
	bool splits_labels;         // it drops labels of samples: each set becomes a series
	bool names_functions;       // it finds names that we do not have, by build ID
	bool tells_partial_success; // in its answer, as ExportProfilesServiceResponse does
	bool compresses;            // `write` compresses the body with gzip
	size_t max_rows;            // in a profile
	size_t max_raw_bytes;       // before compression; a single row may take twice as many
	uint32_t max_frames;
	// Writes the body. Errors of the stream stay in its error indicator.
	struct error *(*write)(const struct push_series *series, FILE *stream);
};

struct destination {
	const struct push_format *format;
	char *url; // http or https, owned
};

// Parses an address. A mistake is an error (EXIT_STATUS_USAGE), whose message repeats nothing that
// may be a secret.
struct error *destination_parse(const char *url, struct destination *ret);
void destination_deinit(struct destination *destination);

// Write the body for each kind of server, as struct push_format says.
struct error *write_push_pyroscope(const struct push_series *series, FILE *stream);
struct error *write_push_parca(const struct push_series *series, FILE *stream);
struct error *write_push_otlp(const struct push_series *series, FILE *stream);

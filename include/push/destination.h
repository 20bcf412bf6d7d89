// SPDX-License-Identifier: MIT
// destination: where profiles are pushed to: a server's address, whose scheme says what it takes.
//
//     http(s)://         Grafana Pyroscope, its push.v1
//     parca+http(s)://   Parca, its writeraw
//     otlp+http(s)://    whoever takes profiles of OpenTelemetry's protocol, 1.10
//     pprof+http(s)://   anybody who takes a pprof file as a body
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
	size_t from, to; // of the rows
	const struct pprof_row
	    *row; // whose labels are the series', too; NULL: they are the samples'
	const struct pprof_file *file; // the rows as pprof
	const char *name;              // of the type that is looked at by default
	const char *id;                // a UUID, the same at each try
};

// What a kind of server takes.
struct push_format {
	const char *scheme;       // what stands before http:// or https://
	const char *path;         // of an address that has none
	const char *content_type; // of the body
	bool takes_files;         // as they are: none of the following applies
	bool splits_labels;       // labels of samples are not kept there: a series for each
	bool names_functions;     // by build ID, those that have no name yet
	bool compresses;          // write compresses the body with gzip
	size_t max_rows;          // of a profile
	size_t max_raw_bytes;     // before compression; a row alone may take twice as many
	uint32_t max_frames;
	int64_t max_age_ns; // older ones are refused
	// The body; what the stream did not take stays in its error indicator.
	struct error *(*write)(const struct push_series *series, FILE *stream);
};

struct destination {
	const struct push_format *format;
	char *url; // http or https, owned
};

// A mistake is an error (EXIT_STATUS_USAGE), which does not repeat what may be a secret.
struct error *destination_parse(const char *url, struct destination *ret);
void destination_deinit(struct destination *destination);

// The bodies of each kind.
struct error *write_push_pyroscope(const struct push_series *series, FILE *stream);
struct error *write_push_parca(const struct push_series *series, FILE *stream);
struct error *write_push_otlp(const struct push_series *series, FILE *stream);

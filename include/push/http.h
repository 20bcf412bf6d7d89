// SPDX-License-Identifier: MIT
// http: posts bodies to servers, by libcurl.
//
// The library is loaded only when something is posted: a process that samples never has it, its
// threads and its megabytes in its address space. What a server answers is cut and cleaned.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct http;

enum { HTTP_MAX_ANSWER_BYTES = 1024 };

struct http_request {
	const char *url, *content_type;
	bool is_packed;             // the body is compressed with gzip
	const char *const *headers; // "Name: value", NULL-terminated; NULL: none
	const void *body;
	size_t size;
};

struct http_answer {
	long status;           // 0: no answer came, and `text` says why
	bool may_be_there;     // no answer came, but the whole request had been sent
	int64_t retry_after_s; // as the server asks; 0: it does not
	char *text;            // the beginning of the answer as one clean line; owned
	char *content_type;    // in lower case; empty: it names none; owned
	char *location;        // of a redirection, without its query; empty: none; owned
	uint8_t *body;         // its beginning; owned
	size_t size;           // of `body`
};

// Loads libcurl. `ca_file`: certificates that are trusted instead of the system's; NULL: the
// system's.
struct error *http_create(const char *ca_file, struct http **ret);
void http_destroy(struct http *http);

// Asks `may_go_on` about once a second while something is posted: false ends the exchange.
// `context` is borrowed.
void http_watch(struct http *http, bool (*may_go_on)(void *context), void *context);

// Posts the body, and waits for the answer. Gives up where in ten seconds less than 10 kB get
// there, or no answer comes in ten seconds after all of it got there. The caller calls
// http_answer_deinit.
void http_post(struct http *http, const struct http_request *request, struct http_answer *ret);
void http_answer_deinit(struct http_answer *answer);

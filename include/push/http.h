// SPDX-License-Identifier: MIT
// http: posts bodies to servers, by libcurl.
//
// The library is loaded only by who posts: a process that samples never has it in its address
// space, with its threads and its megabytes. What a server answers is bounded and cleaned.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct http;

enum { HTTP_MAX_ANSWER_BYTES = 1024 };

struct http_request {
	const char *url, *content_type;
	bool is_packed;             // the body is, with gzip
	const char *const *headers; // "Name: value", NULL-terminated; NULL: none
	const void *body;
	size_t size;
	int64_t timeout_ms; // in all
};

struct http_answer {
	long status;           // 0: none came, and text says why
	bool may_be_there;     // no answer came, but all of the request had gone
	int64_t retry_after_s; // as the server asks; 0: it does not
	char *text;            // the beginning of what it says, one clean line; owned
};

// Loads libcurl. `ca_file`: of certificates that are trusted instead of the system's; NULL: those.
struct error *http_create(const char *ca_file, struct http **ret);
void http_destroy(struct http *http);

// Posts, and waits for the answer or until the time is over. The caller frees ret->text.
void http_post(struct http *http, const struct http_request *request, struct http_answer *ret);

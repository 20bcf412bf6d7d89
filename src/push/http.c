// SPDX-License-Identifier: MIT
#include "http.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Its functions are called by way of pointers.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "error.h"
#include "memory.h"
#include "text.h"

#undef curl_easy_setopt
#undef curl_easy_getinfo

enum {
	MAX_READ_BYTES = 64 << 10, // of a body, and of headers
	CONNECT_TIMEOUT_MS = 5000,
	FIRST_STATUS = 200, // those before only announce an answer (RFC 9110, 15.2)
};

// The names differ with the library for TLS that it is built on; the interface is one.
static const char *const libraries[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

struct http {
	void *library;
	CURL *handle;
	char *ca_file;
	__typeof__(curl_easy_init) *init;
	__typeof__(curl_easy_cleanup) *cleanup;
	__typeof__(curl_easy_reset) *reset;
	__typeof__(curl_easy_setopt) *set;
	__typeof__(curl_easy_getinfo) *get;
	__typeof__(curl_easy_perform) *perform;
	__typeof__(curl_easy_strerror) *explain;
	__typeof__(curl_slist_append) *append;
	__typeof__(curl_slist_free_all) *free_list;
};

// The body of an answer, as far as it is kept.
struct reading {
	char bytes[HTTP_MAX_ANSWER_BYTES];
	size_t size, passed, headers;
};

static bool find_functions(struct http *http)
{
	const struct {
		const char *name;
		void **function;
	} wanted[] = {
	    {"curl_easy_init", (void **)&http->init},
	    {"curl_easy_cleanup", (void **)&http->cleanup},
	    {"curl_easy_reset", (void **)&http->reset},
	    {"curl_easy_setopt", (void **)&http->set},
	    {"curl_easy_getinfo", (void **)&http->get},
	    {"curl_easy_perform", (void **)&http->perform},
	    {"curl_easy_strerror", (void **)&http->explain},
	    {"curl_slist_append", (void **)&http->append},
	    {"curl_slist_free_all", (void **)&http->free_list},
	};

	for (size_t i = 0; i < array_size(wanted); i++) {
		*wanted[i].function = dlsym(http->library, wanted[i].name);
		if (!*wanted[i].function)
			return false;
	}
	return true;
}

struct error *http_create(const char *ca_file, struct http **ret)
{
	struct http *http = memory_alloc_zeroed(1, sizeof(*http));

	for (size_t i = 0; i < array_size(libraries) && !http->library; i++)
		http->library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
	if (!http->library || !find_functions(http) || !(http->handle = http->init())) {
		http_destroy(http);
		return error_create(
		    EXIT_STATUS_OUTPUT,
		    "pushing needs libcurl, which cannot be loaded: install libcurl4 "
		    "(Debian, Ubuntu) or libcurl");
	}
	http->ca_file = ca_file ? memory_strdup(ca_file) : NULL;
	*ret = http;
	return NULL;
}

// The library stays loaded: what it is built on does not expect to be unloaded.
void http_destroy(struct http *http)
{
	if (!http)
		return;
	if (http->handle)
		http->cleanup(http->handle);
	free(http->ca_file);
	free(http);
}

static size_t on_body(char *bytes, size_t one, size_t size, void *context)
{
	struct reading *reading = context;
	const size_t room = sizeof(reading->bytes) - reading->size;
	const size_t part = size < room ? size : room;

	(void)one;
	memcpy(reading->bytes + reading->size, bytes, part);
	reading->size += part;
	reading->passed += size;
	return reading->passed <= MAX_READ_BYTES ? size : 0; // 0 ends it
}

// Announcements of an answer, its headers, and those behind its body, of which libcurl keeps each.
static size_t on_header(char *bytes, size_t one, size_t size, void *context)
{
	struct reading *reading = context;

	(void)bytes, (void)one;
	reading->headers += size;
	return reading->headers <= MAX_READ_BYTES ? size : 0;
}

static struct curl_slist *make_headers(struct http *http, const struct http_request *request)
{
	_cleanup_free_ char *type = memory_printf("Content-Type: %s", request->content_type);
	struct curl_slist *list = http->append(NULL, type);

	list = http->append(list, "Expect:"); // no wait for a "100 Continue"
	if (request->is_packed)
		list = http->append(list, "Content-Encoding: gzip");
	for (const char *const *header = request->headers; header && *header; header++)
		list = http->append(list, *header);
	return list;
}

// Redirections are not followed: they would take the credentials to where nobody sent them.
static void set_options(struct http *http, const struct http_request *request,
                        struct curl_slist *headers, struct reading *reading)
{
	CURL *handle = http->handle;
	const int64_t connect_ms =
	    request->timeout_ms < CONNECT_TIMEOUT_MS ? request->timeout_ms : CONNECT_TIMEOUT_MS;

	http->reset(handle); // connections stay
	http->set(handle, CURLOPT_URL, request->url);
	http->set(handle, CURLOPT_NOSIGNAL, 1L);
	http->set(handle, CURLOPT_FOLLOWLOCATION, 0L);
	http->set(handle, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
	http->set(handle, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
	http->set(handle, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	http->set(handle, CURLOPT_QUICK_EXIT, 1L); // a resolver that hangs is not waited for
	http->set(handle, CURLOPT_USERAGENT, "profiler/" PROFILER_VERSION);
	http->set(handle, CURLOPT_POST, 1L);
	http->set(handle, CURLOPT_POSTFIELDS, request->body);
	http->set(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->size);
	http->set(handle, CURLOPT_HTTPHEADER, headers);
	http->set(handle, CURLOPT_WRITEFUNCTION, on_body);
	http->set(handle, CURLOPT_WRITEDATA, reading);
	http->set(handle, CURLOPT_HEADERFUNCTION, on_header);
	http->set(handle, CURLOPT_HEADERDATA, reading);
	if (http->ca_file)
		http->set(handle, CURLOPT_CAINFO, http->ca_file);
}

void http_post(struct http *http, const struct http_request *request, struct http_answer *ret)
{
	struct reading reading = {0};
	struct curl_slist *headers = make_headers(http, request);
	curl_off_t retry_after = 0, sent = 0;

	*ret = (struct http_answer){0};
	set_options(http, request, headers, &reading);
	const CURLcode code = http->perform(http->handle);
	// A server that has said what became of the request has taken or refused it, whether the
	// rest of its answer comes or not.
	http->get(http->handle, CURLINFO_RESPONSE_CODE, &ret->status);
	http->get(http->handle, CURLINFO_RETRY_AFTER, &retry_after);
	ret->retry_after_s = retry_after;
	if (ret->status < FIRST_STATUS)
		ret->status = 0;
	http->get(http->handle, CURLINFO_SIZE_UPLOAD_T, &sent);
	ret->may_be_there = ret->status == 0 && sent >= (curl_off_t)request->size;
	const char *why = reading.headers > MAX_READ_BYTES ? "its answer has headers without end"
	                                                   : http->explain(code);
	ret->text = ret->status ? text_clean(reading.bytes, reading.size, HTTP_MAX_ANSWER_BYTES)
	                        : text_clean(why, strlen(why), HTTP_MAX_ANSWER_BYTES);
	http->free_list(headers);
}

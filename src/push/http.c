// SPDX-License-Identifier: MIT
#include "http.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/sockios.h>

// Its functions are called by way of pointers.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "clock.h"
#include "error.h"
#include "memory.h"
#include "text.h"

#undef curl_easy_setopt
#undef curl_easy_getinfo

enum {
	MAX_READ_BYTES = 64 << 10, // of a body, and of headers
	CONNECT_TIMEOUT_MS = 5000,
	PATIENCE_S = 10, // for the answer, and for so many bytes of the request:
	LEAST_BYTES = 10000,
	MAX_SOCKETS = 8,    // that are open at once: an old connection, and two ways to a new one
	FIRST_STATUS = 200, // those before only announce an answer (RFC 9110, 15.2)
};

// The names differ with the library for TLS that it is built on; the interface is one.
static const char *const libraries[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

struct http {
	void *library;
	CURL *handle;
	char *ca_file;
	bool (*may_go_on)(void *context);
	void *context;            // borrowed
	int sockets[MAX_SOCKETS]; // libcurl's own; 0: free
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
	uint8_t *bytes;
	size_t size, headers;
};

// How far a request has come.
struct progress {
	const struct http *http;
	size_t size; // of the request's body
	curl_off_t moved_bytes;
	int64_t moved_ns; // when that was so
	bool is_sent;
	const char *stopped; // why it was given up; NULL: it was not
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
void http_watch(struct http *http, bool (*may_go_on)(void *context), void *context)
{
	http->may_go_on = may_go_on;
	http->context = context;
}

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
	const size_t room = MAX_READ_BYTES - reading->size;
	const size_t part = size < room ? size : room;

	(void)one;
	memcpy(reading->bytes + reading->size, bytes, part);
	reading->size += part;
	return size <= room ? size : 0; // 0 ends it
}

// Announcements of an answer, its headers, and those behind its body, of which libcurl keeps each.
static size_t on_header(char *bytes, size_t one, size_t size, void *context)
{
	struct reading *reading = context;

	(void)bytes, (void)one;
	reading->headers += size;
	return reading->headers <= MAX_READ_BYTES ? size : 0;
}

static void replace_socket(struct http *http, int from, int to)
{
	for (size_t i = 0; i < MAX_SOCKETS; i++)
		if (http->sockets[i] == from) {
			http->sockets[i] = to;
			return;
		}
}

static int on_open(void *context, curl_socket_t socket, curlsocktype purpose)
{
	(void)purpose;
	replace_socket(context, 0, socket);
	return CURL_SOCKOPT_OK;
}

static int on_close(void *context, curl_socket_t socket)
{
	replace_socket(context, socket, 0);
	return close(socket);
}

// What the kernel still has of what libcurl has handed over to it. Of the sockets only that of the
// request has any. (CURLINFO_ACTIVESOCKET is not set before the first request has ended.)
static curl_off_t queued_bytes(const struct http *http)
{
	curl_off_t sum = 0;

	for (size_t i = 0; i < MAX_SOCKETS; i++) {
		int queued = 0;
		if (http->sockets[i] && ioctl(http->sockets[i], SIOCOUTQ, &queued) == 0)
			sum += queued;
	}
	return sum;
}

// Returns 1 to give the request up. A thin line may take its time, as long as bytes get there.
static int on_progress(void *context, curl_off_t to_come, curl_off_t came, curl_off_t to_go,
                       curl_off_t gone)
{
	struct progress *progress = context;
	const struct http *http = progress->http;
	const int64_t now_ns = clock_now_ns();
	const curl_off_t queued = queued_bytes(http);
	const bool is_sent = gone >= (curl_off_t)progress->size && queued == 0;

	(void)to_come, (void)came, (void)to_go;
	if ((is_sent && !progress->is_sent) ||
	    (!is_sent && gone - queued >= progress->moved_bytes + LEAST_BYTES)) {
		progress->is_sent = is_sent;
		progress->moved_bytes = gone - queued;
		progress->moved_ns = now_ns;
	}
	if (now_ns - progress->moved_ns > PATIENCE_S * NS_PER_SECOND)
		progress->stopped = is_sent ? "it does not answer within 10 s"
		                            : "less than 1 kB a second gets there";
	else if (http->may_go_on && !http->may_go_on(http->context))
		progress->stopped = "it does not answer in time";
	return progress->stopped != NULL;
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
                        struct curl_slist *headers)
{
	CURL *handle = http->handle;

	http->reset(handle); // connections stay
	http->set(handle, CURLOPT_URL, request->url);
	http->set(handle, CURLOPT_NOSIGNAL, 1L);
	http->set(handle, CURLOPT_FOLLOWLOCATION, 0L);
	http->set(handle, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
	http->set(handle, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	http->set(handle, CURLOPT_QUICK_EXIT, 1L); // a resolver that hangs is not waited for
	http->set(handle, CURLOPT_USERAGENT, "profiler/" PROFILER_VERSION);
	http->set(handle, CURLOPT_POST, 1L);
	http->set(handle, CURLOPT_POSTFIELDS, request->body);
	http->set(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->size);
	http->set(handle, CURLOPT_HTTPHEADER, headers);
	http->set(handle, CURLOPT_SOCKOPTFUNCTION, on_open);
	http->set(handle, CURLOPT_SOCKOPTDATA, http);
	http->set(handle, CURLOPT_CLOSESOCKETFUNCTION, on_close);
	http->set(handle, CURLOPT_CLOSESOCKETDATA, http);
	if (http->ca_file)
		http->set(handle, CURLOPT_CAINFO, http->ca_file);
}

static void set_callbacks(struct http *http, struct reading *reading, struct progress *progress,
                          char *message)
{
	CURL *handle = http->handle;

	http->set(handle, CURLOPT_ERRORBUFFER, message);
	http->set(handle, CURLOPT_WRITEFUNCTION, on_body);
	http->set(handle, CURLOPT_WRITEDATA, reading);
	http->set(handle, CURLOPT_HEADERFUNCTION, on_header);
	http->set(handle, CURLOPT_HEADERDATA, reading);
	http->set(handle, CURLOPT_NOPROGRESS, 0L);
	http->set(handle, CURLOPT_XFERINFOFUNCTION, on_progress);
	http->set(handle, CURLOPT_XFERINFODATA, progress);
}

// Why no answer came. `message`: libcurl's, with names and ports; empty: it has none.
static char *explain(const struct http *http, CURLcode code, const struct reading *reading,
                     const struct progress *progress, const char *message)
{
	const char *why = message[0] ? message : http->explain(code);

	if (reading->headers > MAX_READ_BYTES)
		why = "its answer has headers without end";
	else if (progress->stopped)
		why = progress->stopped;
	else if (code == CURLE_UNSUPPORTED_PROTOCOL)
		why = "what listens there does not speak HTTP/1.1: is it a port for gRPC or TLS?";
	return text_clean(why, strlen(why), HTTP_MAX_ANSWER_BYTES);
}

static void read_headers(struct http *http, struct http_answer *ret)
{
	const char *type = NULL, *location = NULL;
	curl_off_t retry_after = 0;

	http->get(http->handle, CURLINFO_RETRY_AFTER, &retry_after);
	http->get(http->handle, CURLINFO_CONTENT_TYPE, &type);
	http->get(http->handle, CURLINFO_REDIRECT_URL, &location);
	ret->retry_after_s = retry_after;
	ret->content_type = text_clean(type ?: "", strlen(type ?: ""), HTTP_MAX_ANSWER_BYTES);
	for (char *c = ret->content_type; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	// Behind it may be a token.
	ret->location =
	    text_clean(location ?: "", strcspn(location ?: "", "?#"), HTTP_MAX_ANSWER_BYTES);
}

void http_post(struct http *http, const struct http_request *request, struct http_answer *ret)
{
	struct reading reading = {.bytes = memory_alloc(MAX_READ_BYTES)};
	struct progress progress = {
	    .http = http, .size = request->size, .moved_ns = clock_now_ns()};
	char message[CURL_ERROR_SIZE] = "";
	struct curl_slist *headers = make_headers(http, request);
	curl_off_t sent = 0;

	*ret = (struct http_answer){0};
	set_options(http, request, headers);
	set_callbacks(http, &reading, &progress, message);
	const CURLcode code = http->perform(http->handle);
	// A server that has said what became of the request has taken or refused it, whether the
	// rest of its answer comes or not.
	http->get(http->handle, CURLINFO_RESPONSE_CODE, &ret->status);
	if (ret->status < FIRST_STATUS)
		ret->status = 0;
	http->get(http->handle, CURLINFO_SIZE_UPLOAD_T, &sent);
	ret->may_be_there = ret->status == 0 && sent >= (curl_off_t)request->size;
	read_headers(http, ret);
	ret->body = reading.bytes;
	ret->size = reading.size;
	ret->text = ret->status
	                ? text_clean((const char *)ret->body, ret->size, HTTP_MAX_ANSWER_BYTES)
	                : explain(http, code, &reading, &progress, message);
	http->set(http->handle, CURLOPT_ERRORBUFFER, NULL);
	http->free_list(headers);
}

void http_answer_deinit(struct http_answer *answer)
{
	free(answer->text);
	free(answer->content_type);
	free(answer->location);
	free(answer->body);
}

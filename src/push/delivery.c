// SPDX-License-Identifier: MIT
#include "delivery.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "destination.h"
#include "error.h"
#include "http.h"
#include "memory.h"
#include "protobuf.h"
#include "push_counts.h"
#include "push_headers.h"
#include "push_parts.h"
#include "push_queue.h"
#include "regular_file.h"
#include "text.h"
#include "uploader.h"

enum { MAX_RETRY_AFTER_S = 300 };

// --- What a server's answer means

enum {
	STATUS_TIMEOUT = 408,
	STATUS_TOO_MANY = 429,
	// ExportProfilesServiceResponse and its ExportProfilesPartialSuccess.
	RESPONSE_PARTIAL_SUCCESS = 1,
	PARTIAL_REJECTED_PROFILES = 1,
	PARTIAL_ERROR_MESSAGE = 2,
	MAX_FIELDS = 64,
};

// https://www.rfc-editor.org/rfc/rfc9110#section-15, and what servers mean by it: Pyroscope answers
// 500 to a profile that it cannot read, and 429 to one that is larger than a burst may ever be.
static enum verdict judge_status(long status)
{
	if (status >= 200 && status < 300)
		return VERDICT_SENT;
	if (status == 0 || status == STATUS_TIMEOUT)
		return VERDICT_LATER;
	if (status == STATUS_TOO_MANY || status >= 500)
		return VERDICT_FAULTY;
	if (status == 400 || status == 413 || status == 422)
		return VERDICT_REFUSED;
	return VERDICT_CONFIGURATION;
}

static bool begins_with(const struct http_answer *answer, const char *word)
{
	static const char space[] = " \t\r\n\xef\xbb\xbf"; // or the mark of UTF-8
	size_t i = 0;

	while (i < answer->size && memchr(space, answer->body[i], sizeof(space) - 1))
		i++;
	return answer->size - i >= strlen(word) &&
	       strncasecmp((const char *)answer->body + i, word, strlen(word)) == 0;
}

// A page of a proxy's (sign in), a load balancer's, or another program's: nothing was taken. Who
// takes plain files may answer with any text, which some frameworks call HTML.
static bool is_web_page(const struct push_format *format, const struct http_answer *answer)
{
	const bool is_html = strstr(answer->content_type, "html") != NULL;

	return begins_with(answer, "<!doctype") || begins_with(answer, "<html") ||
	       (is_html && (!format->takes_files || begins_with(answer, "<")));
}

struct partial_success {
	uint64_t rejected;
	const uint8_t *message; // of the answer
	size_t size;
};

static void read_partial(struct protobuf_cursor cursor, struct partial_success *ret)
{
	struct protobuf_field field;

	for (int i = 0; i < MAX_FIELDS && protobuf_cursor_next(&cursor, &field); i++) {
		if (field.number == PARTIAL_REJECTED_PROFILES)
			ret->rejected = field.value;
		if (field.number == PARTIAL_ERROR_MESSAGE && field.bytes) {
			ret->message = field.bytes;
			ret->size = field.size;
		}
	}
}

// OpenTelemetry's protocol tells with status 200 what was not taken.
static struct partial_success find_partial(const struct http_answer *answer)
{
	struct protobuf_cursor cursor = protobuf_cursor_of(answer->body, answer->size);
	struct partial_success partial = {0};
	struct protobuf_field field;

	for (int i = 0; i < MAX_FIELDS && protobuf_cursor_next(&cursor, &field); i++)
		if (field.number == RESPONSE_PARTIAL_SUCCESS && field.bytes)
			read_partial(protobuf_cursor_of(field.bytes, field.size), &partial);
	return partial;
}

static enum verdict judge_partial(const struct http_answer *answer, char **ret_text)
{
	const struct partial_success partial = find_partial(answer);

	if (partial.rejected == 0 && partial.size == 0)
		return VERDICT_SENT;
	_cleanup_free_ char *words =
	    text_clean((const char *)partial.message, partial.size, HTTP_MAX_ANSWER_BYTES);
	if (partial.rejected == 0) {
		*ret_text = memory_printf("it takes it, but says: %s", words);
		return VERDICT_SENT;
	}
	*ret_text = memory_printf("it answers %ld, but rejects %" PRIu64 " profile%s%s%s",
	                          answer->status, partial.rejected,
	                          partial.rejected == 1 ? "" : "s", words[0] ? ": " : "", words);
	return VERDICT_REFUSED;
}

// Returns what became of the request. *ret_text is the reason as one clean line; NULL: there is
// none. The caller frees it. After VERDICT_SENT it is the server's warning.
static enum verdict push_answer_judge(const struct push_format *format,
                                      const struct http_answer *answer, char **ret_text)
{
	const enum verdict verdict = judge_status(answer->status);

	*ret_text = NULL;
	if (verdict == VERDICT_SENT && is_web_page(format, answer)) {
		*ret_text = memory_printf("it answers %ld with a web page: check the address and "
		                          "whether a proxy wants a login",
		                          answer->status);
		return VERDICT_CONFIGURATION;
	}
	if (verdict == VERDICT_SENT)
		return format->tells_partial_success ? judge_partial(answer, ret_text) : verdict;
	if (answer->status == 0)
		*ret_text = memory_strdup(answer->text);
	else if (answer->location[0])
		*ret_text = memory_printf("it answers %ld, a redirection to %s", answer->status,
		                          answer->location);
	else
		*ret_text = memory_printf("it answers %ld%s%s", answer->status,
		                          answer->text[0] ? ": " : "", answer->text);
	return verdict;
}

// --- Sending

// What of it is at hand while it is sent.
struct sending {
	const struct uploader *uploader;
	struct http *http;
	struct push_window *window;
	struct push_parts parts;
	bool is_unanswered; // the last request, though all of it had gone
	struct delivery *result;
};

// Opens the window's file and locks it, so that no other uploader sends it, too: the lock ends with
// the process. -1 with errno: it is gone (ENOENT), is locked (EWOULDBLOCK), or cannot be opened.
static int claim(const struct push_window *window, bool exclusive)
{
	struct stat status;
	_cleanup_close_ int fd = regular_file_open_path(window->path, &status);

	if (fd < 0 || (exclusive && flock(fd, LOCK_EX | LOCK_NB) != 0) || fstat(fd, &status) != 0)
		return -1;
	if (status.st_nlink == 0) {
		errno = ENOENT;
		return -1;
	}
	const int claimed = fd;
	fd = -1;
	return claimed;
}

// False: it is larger than any window, or cannot be read.
static bool read_all(int fd, uint8_t **ret, size_t *ret_size)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size = 0, capacity = 0;
	ssize_t n;

	do {
		bytes = memory_grow(bytes, &capacity, size + (1 << 16), 1);
		n = read(fd, bytes + size, capacity - size);
		size += n > 0 ? (size_t)n : 0;
	} while ((n > 0 && size <= PUSH_MAX_BYTES) || (n < 0 && errno == EINTR));
	*ret = take_pointer(bytes);
	*ret_size = size;
	return n == 0;
}

// The file as pprof. NULL with *ret_error, or where it cannot be read.
static struct error *read_window(const struct uploader *uploader, const struct push_window *window,
                                 int fd, uint8_t **ret, size_t *ret_size)
{
	static const char magic[] = "\x89WPROF";
	uint8_t *bytes = NULL;
	size_t size;

	if (!read_all(fd, &bytes, &size)) {
		free(bytes);
		return error_create(EXIT_STATUS_TARGET,
		                    "%s cannot be read, or is larger than %d MiB", window->path,
		                    PUSH_MAX_BYTES >> 20);
	}
	if (uploader->convert && size >= sizeof(magic) - 1 &&
	    memcmp(bytes, magic, sizeof(magic) - 1) == 0)
		return uploader->convert(window->path, bytes, size, ret, ret_size);
	*ret = bytes;
	*ret_size = size;
	return NULL;
}

static struct error *make_parts(const struct uploader *uploader, const struct push_window *window,
                                int fd, struct push_parts *ret)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size = 0;
	struct error *error = read_window(uploader, window, fd, &bytes, &size);

	return error ? error : push_parts_make(window->path, bytes, size, &uploader->wishes, ret);
}

static char *clean(const char *text)
{
	return text_clean(text, strlen(text), HTTP_MAX_ANSWER_BYTES);
}

static void take_error(struct delivery *result, enum verdict verdict, struct error *error)
{
	result->verdict = verdict;
	result->text = clean(error_message(error));
	error_destroy(error);
}

static void take_answer(struct sending *sending, const struct http_answer *answer)
{
	struct delivery *result = sending->result;
	int64_t wait_s = answer->retry_after_s;

	free(take_pointer(result->text)); // of a part before
	result->verdict =
	    push_answer_judge(sending->uploader->wishes.destination->format, answer, &result->text);
	if (wait_s > MAX_RETRY_AFTER_S)
		wait_s = MAX_RETRY_AFTER_S;
	if (result->verdict != VERDICT_SENT)
		result->retry_after_ns = wait_s > 0 ? wait_s * NS_PER_SECOND : 0;
}

// What is said of a file that claim() has not opened.
static void note_unclaimed(struct delivery *result, int number)
{
	if (number == ENOENT || number == EWOULDBLOCK)
		return;
	result->verdict = VERDICT_BARRED;
	result->text = memory_printf("it cannot be opened: %s",
	                             number == ENODEV ? "not a regular file" : strerror(number));
}

// The file of credentials is read each time: they may have been renewed.
static bool post(struct sending *sending, const struct push_part *part)
{
	const struct uploader *uploader = sending->uploader;
	const struct destination *destination = uploader->wishes.destination;
	struct push_headers headers = {0};
	struct http_answer answer;

	if (uploader->header_file) {
		struct error *error = push_headers_read(uploader->header_file, &headers);
		if (error) {
			take_error(sending->result, VERDICT_CONFIGURATION, error);
			return false;
		}
	}
	http_post(sending->http,
	          &(struct http_request){
	              .url = destination->url,
	              .content_type = destination->format->content_type,
	              .is_packed = destination->format->compresses,
	              .headers = (const char *const *)headers.lines,
	              .body = part->body,
	              .size = part->size,
	          },
	          &answer);
	sending->is_unanswered = answer.may_be_there;
	uploader->counts->requests++;
	take_answer(sending, &answer);
	if (sending->result->text)
		push_headers_hide(&headers, sending->result->text);
	push_headers_deinit(&headers);
	http_answer_deinit(&answer);
	return sending->result->verdict == VERDICT_SENT;
}

static void mark(const struct sending *sending)
{
	if (sending->uploader->removes)
		push_queue_mark(sending->window);
}

// False: it is not taken now.
static bool send_part(struct sending *sending, const struct push_part *part)
{
	struct push_counts *counts = sending->uploader->counts;
	struct push_window *window = sending->window;
	const bool may_be_there = window->may_be_there;

	window->may_be_there = true; // for who comes after, should this process be killed now
	mark(sending);
	if (!post(sending, part)) {
		window->may_be_there = may_be_there || sending->is_unanswered;
		mark(sending);
		return false;
	}
	window->may_be_there = false;
	window->n_sent++;
	counts->sent_samples += part->samples;
	counts->maybe_twice_samples += may_be_there ? part->samples : 0;
	counts->last_success_ns = clock_read_ns(CLOCK_REALTIME);
	sending->result->samples -= part->samples;
	sending->result->has_sent = true;
	return true;
}

static void send_parts(struct sending *sending)
{
	struct push_counts *counts = sending->uploader->counts;
	const struct push_parts *parts = &sending->parts;

	for (size_t i = sending->window->n_sent; i < parts->count; i++)
		if (!send_part(sending, &parts->items[i]))
			return;
	sending->result->verdict = VERDICT_SENT; // if there was nothing to be sent, too
	counts->sent_windows++;
	counts->dropped_samples[PUSH_TOO_LARGE] += sending->result->samples;
	if (!sending->result->samples)
		return;
	free(sending->result->text);
	sending->result->text =
	    memory_printf("%" PRIu64 " of its samples are larger than what the server takes",
	                  sending->result->samples);
}

// What fits into no request alone is among them.
static uint64_t count_unsent(const struct push_parts *parts, const struct push_window *window)
{
	uint64_t n = parts->samples;

	for (size_t i = 0; i < window->n_sent && i < parts->count; i++)
		n -= parts->items[i].samples;
	return n;
}

// What it would do, for --dry-run.
static void show(const struct sending *sending)
{
	const char *url = sending->uploader->wishes.destination->url;
	const int length = (int)strcspn(url, "?"); // behind it may be a token
	_cleanup_free_ char *path = clean(sending->window->path);

	printf("%s: %" PRIu64 " samples\n", path, sending->parts.samples);
	for (size_t i = 0; i < sending->parts.count; i++) {
		const struct push_part *part = &sending->parts.items[i];
		printf("\tPOST %.*s: %zu bytes (%zu before compression), %" PRIu64 " samples %s\n",
		       length, url, part->size, part->raw_size, part->samples, part->series);
	}
	sending->result->verdict = VERDICT_SENT;
	sending->uploader->counts->sent_windows++;
	sending->uploader->counts->sent_samples += sending->parts.samples;
}

void deliver(const struct uploader *uploader, struct http *http, struct push_window *window,
             struct delivery *ret)
{
	struct sending sending = {
	    .uploader = uploader,
	    .http = http,
	    .window = window,
	    .result = ret,
	};
	*ret = (struct delivery){
	    .verdict = VERDICT_GONE,
	    .fd = claim(window, uploader->removes),
	};
	if (ret->fd < 0) {
		note_unclaimed(ret, errno);
		return;
	}
	struct error *error = make_parts(uploader, window, ret->fd, &sending.parts);
	if (error) {
		take_error(ret, VERDICT_UNREADABLE, error);
		return;
	}
	ret->samples = count_unsent(&sending.parts, window);
	if (uploader->dry)
		show(&sending);
	else
		send_parts(&sending);
	push_parts_deinit(&sending.parts);
}

bool delivery_claim(const struct uploader *uploader, const struct push_window *window,
                    struct delivery *ret)
{
	struct push_parts parts = {0};

	*ret = (struct delivery){.verdict = VERDICT_GONE, .fd = claim(window, true)};
	if (ret->fd < 0)
		return false;
	struct error *error = make_parts(uploader, window, ret->fd, &parts);
	ret->samples = error ? 0 : count_unsent(&parts, window);
	error_destroy(error);
	push_parts_deinit(&parts);
	return true;
}

void delivery_deinit(struct delivery *delivery)
{
	if (delivery->fd >= 0)
		close(delivery->fd);
	free(delivery->text);
}

// SPDX-License-Identifier: MIT
#include "push_answer.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "destination.h"
#include "http.h"
#include "memory.h"
#include "protobuf_cursor.h"
#include "text.h"

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

enum verdict push_answer_judge(const struct push_format *format, const struct http_answer *answer,
                               char **ret_text)
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

// SPDX-License-Identifier: MIT
#include "json.h"

#include <inttypes.h>
#include <string.h>

#include "labels.h"
#include "memory.h"
#include "profile.h"
#include "text.h"

// Writes what separates a value or a key from the one before.
static void separate(struct json *json)
{
	if (json->comma)
		putc_unlocked(',', json->stream);
	json->comma = true;
}

void json_open(struct json *json, char bracket)
{
	separate(json);
	putc_unlocked(bracket, json->stream);
	json->comma = false;
}

void json_close(struct json *json, char bracket)
{
	putc_unlocked(bracket, json->stream);
	json->comma = true;
}

static void put_quoted(struct json *json, const char *string)
{
	putc_unlocked('"', json->stream);
	for (const char *c = string; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(json->stream, "\\%c", *c);
		else if ((unsigned char)*c < ' ')
			fprintf(json->stream, "\\u%04x", (unsigned int)*c);
		else
			putc_unlocked(*c, json->stream);
	}
	putc_unlocked('"', json->stream);
}

void json_key(struct json *json, const char *key)
{
	separate(json);
	put_quoted(json, key);
	putc_unlocked(':', json->stream);
	json->comma = false;
}

void json_string(struct json *json, const char *string)
{
	separate(json);
	put_quoted(json, string);
}

void json_int(struct json *json, int64_t value)
{
	separate(json);
	fprintf(json->stream, "%" PRId64, value);
}

void json_bool(struct json *json, bool value)
{
	separate(json);
	fputs(value ? "true" : "false", json->stream);
}

void json_null(struct json *json)
{
	separate(json);
	fputs("null", json->stream);
}

void json_time(struct json *json, int64_t ns, int64_t unit_ns)
{
	const uint64_t magnitude = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	int digits = 0;

	for (int64_t unit = unit_ns; unit > 1; unit /= 10)
		digits++;
	separate(json);
	fprintf(json->stream, "%s%" PRIu64 ".%0*" PRIu64, ns < 0 ? "-" : "",
	        magnitude / (uint64_t)unit_ns, digits, magnitude % (uint64_t)unit_ns);
}

void json_key_string(struct json *json, const char *key, const char *string)
{
	json_key(json, key);
	json_string(json, string);
}

void json_key_clean(struct json *json, const char *key, const char *bytes)
{
	_cleanup_free_ char *clean = text_clean(bytes, strlen(bytes), TEXT_UNLIMITED);

	json_key_string(json, key, clean);
}

void json_key_int(struct json *json, const char *key, int64_t value)
{
	json_key(json, key);
	json_int(json, value);
}

void json_key_bool(struct json *json, const char *key, bool value)
{
	json_key(json, key);
	json_bool(json, value);
}

void json_key_open(struct json *json, const char *key, char bracket)
{
	json_key(json, key);
	json_open(json, bracket);
}

void json_labels_write(struct json *json, const struct profile *profile, uint32_t labels)
{
	const char *at = labels == LABELS_NONE ? "" : profile->labels[labels];
	struct label label = {0};

	json_key_open(json, "labels", '{');
	while (labels_next(&at, &label))
		json_key_string(json, label.key, label.value);
	json_close(json, '}');
}

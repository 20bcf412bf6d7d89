// SPDX-License-Identifier: MIT
#include "destination.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "memory.h"

// Pyroscope's limits are those of its defaults for a tenant: 16,000 samples, 1,000 frames, and 2
// MiB at once, labels included, which are counted before compression and shared by all who send at
// that time: half of them leaves room. OpenTelemetry's profiles are three there, of one type of
// values each.
enum { PYROSCOPE_ROWS = 15000, PYROSCOPE_BYTES = 1000000, PYROSCOPE_FRAMES = 1000 };

static const struct push_format formats[] = {
    {
        .scheme = "",
        .path = "/push.v1.PusherService/Push",
        .content_type = "application/proto",
        .max_rows = PYROSCOPE_ROWS,
        .max_raw_bytes = PYROSCOPE_BYTES,
        .max_frames = PYROSCOPE_FRAMES,
        .write = write_push_pyroscope,
    },
    {
        .scheme = "parca+",
        .path = "/api/profiles/writeraw",
        .content_type = "application/json",
        .splits_labels = true,
        .names_functions = true,
        .max_rows = 100000,
        .max_raw_bytes = 16 << 20,
        .max_frames = 1000,
        .write = write_push_parca,
    },
    {
        .scheme = "otlp+",
        .path = "/v1development/profiles",
        .content_type = "application/x-protobuf",
        .compresses = true,
        .tells_partial_success = true,
        .max_rows = PYROSCOPE_ROWS,
        .max_raw_bytes = PYROSCOPE_BYTES / 3,
        .max_frames = PYROSCOPE_FRAMES,
        .write = write_push_otlp,
    },
    {
        .scheme = "pprof+",
        .path = "/v1/pprof",
        .content_type = "application/octet-stream",
        .takes_files = true,
    },
};

static const struct push_format *find_format(const char **url)
{
	for (size_t i = array_size(formats); i-- > 0;) {
		const size_t length = strlen(formats[i].scheme);
		const char *rest = *url + length;
		if (strncmp(*url, formats[i].scheme, length) != 0 ||
		    (strncmp(rest, "http://", 7) != 0 && strncmp(rest, "https://", 8) != 0))
			continue;
		*url = rest;
		return &formats[i];
	}
	return NULL;
}

// curl(1) would take more; what is refused here could not be told apart from a mistake.
static bool is_printable(const char *url)
{
	for (; *url; url++)
		if (*url <= ' ' || *url > '~')
			return false;
	return true;
}

// HOST, HOST:PORT, [IPv6] or [IPv6]:PORT; `length`: of it.
static bool is_host(const char *host, size_t length)
{
	const char *end = memchr(host, host[0] == '[' ? ']' : ':', length);
	const char *colon = end && host[0] == '[' ? end + 1 : end;
	unsigned long port = 0;

	if (host[0] == '[' && !end)
		return false;
	if (!colon || colon == host + length)
		return length > 0;
	if (colon == host || *colon != ':')
		return false;
	for (const char *c = colon + 1; c < host + length; c++) {
		if (*c < '0' || *c > '9' || port > UINT16_MAX)
			return false;
		port = port * 10 + (unsigned long)(*c - '0');
	}
	return port > 0 && port <= UINT16_MAX;
}

struct error *destination_parse(const char *url, struct destination *ret)
{
	const struct push_format *format = find_format(&url);

	if (!format)
		return error_create(EXIT_STATUS_USAGE,
		                    "not an address to push to: give http://HOST:PORT or "
		                    "https://HOST for Pyroscope, parca+http://..., "
		                    "otlp+http://... or pprof+http://...");
	const char *host = strchr(url, '/') + 2;
	const size_t length = strcspn(host, "/?#");
	if (length == 0 || !is_printable(url) || strchr(host, '#'))
		return error_create(EXIT_STATUS_USAGE,
		                    "the address to push to names no host, or has characters that "
		                    "do not belong there");
	if (memchr(host, '@', length))
		return error_create(EXIT_STATUS_USAGE,
		                    "the address to push to holds a password, which everybody can "
		                    "read in /proc: put it into a file for --push-header-file");
	if (!is_host(host, length))
		return error_create(
		    EXIT_STATUS_USAGE,
		    "the address to push to names no host that can be reached: give "
		    "HOST, HOST:PORT (1 to 65535) or [IPv6]:PORT");
	const bool has_path = host[length] == '/' && host[length + 1] != '\0';
	*ret = (struct destination){
	    .format = format,
	    .url = has_path || host[length] == '?'
	               ? memory_strdup(url)
	               : memory_printf("%.*s%s", (int)(host + length - url), url, format->path),
	};
	return NULL;
}

void destination_deinit(struct destination *destination)
{
	free(destination->url);
	*destination = (struct destination){0};
}

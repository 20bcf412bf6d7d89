// SPDX-License-Identifier: MIT
#include "uploader.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "delivery.h"
#include "destination.h"
#include "error.h"
#include "hash.h"
#include "http.h"
#include "memory.h"
#include "push_counts.h"
#include "push_queue.h"
#include "text.h"

#define FIRST_WAIT_NS NS_PER_SECOND
#define MAX_WAIT_NS (60 * NS_PER_SECOND)
#define TELL_EVERY_NS (60 * NS_PER_SECOND)
#define LOOK_EVERY_NS (NS_PER_SECOND / 2)
#define FLUSH_NS (UPLOADER_FLUSH_S * NS_PER_SECOND)

enum {
	FLUSH_FAILURES = 3,  // then the server is taken to be away
	POISON_FAILURES = 5, // beside a window that the server takes
	MAX_TEXT_BYTES = 2048,
};

struct upload {
	const struct uploader *uploader;
	struct http *http;
	struct push_queue queue;
	uint64_t random;
	int64_t wait_ns;       // after the next failure
	int64_t next_ns;       // nothing is tried before, CLOCK_MONOTONIC
	int64_t deadline_ns;   // of the flush; 0: the end has not come
	unsigned int failures; // in a row, since it has
	int64_t told_ns[N_VERDICTS + 1];
	bool is_misconfigured; // by the last answer
	bool all_seen;         // each path could be looked at
};

// When the user asked for the end, CLOCK_MONOTONIC. Once more ends the process.
static volatile int64_t asked_ns;

static void on_signal(int number)
{
	(void)number;
	asked_ns = clock_now_ns();
}

const char *push_drop_name(enum push_drop drop)
{
	static const char *const names[] = {
	    [PUSH_REFUSED] = "refused",       [PUSH_POISON] = "poison",
	    [PUSH_EVICTED] = "evicted",       [PUSH_TOO_LARGE] = "too_large",
	    [PUSH_UNREADABLE] = "unreadable",
	};

	return names[drop];
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	_cleanup_free_ char *text = memory_vprintf(format, args);
	va_end(args);
	_cleanup_free_ char *shown = text_clean(text, strlen(text), MAX_TEXT_BYTES);
	fprintf(stderr, "profiler: %s\n", shown);
}

// The part of the address that is not secret: tokens may follow it.
static int host_length(const char *url)
{
	const char *host = strchr(url, '/') + 2;

	return (int)(host - url + (int)strcspn(host, "/?"));
}

// Once a minute for each kind.
static void tell(struct upload *upload, const struct push_window *window,
                 const struct delivery *delivery, const char *consequence)
{
	const int64_t now_ns = clock_now_ns();
	// A window that is given up had its first failure told before.
	const bool is_given_up = window->is_done && delivery->verdict == VERDICT_FAULTY;
	int64_t *told_ns = &upload->told_ns[is_given_up ? N_VERDICTS : delivery->verdict];
	const char *url = upload->uploader->wishes.destination->url;

	if (*told_ns && now_ns - *told_ns < TELL_EVERY_NS)
		return;
	*told_ns = now_ns;
	say("push: %.*s: %s: %s: %s", host_length(url), url, window->path, delivery->text,
	    consequence);
}

static int64_t jittered(struct upload *upload, int64_t ns)
{
	upload->random = hash_mix(upload->random, (uint64_t)ns);
	return ns - ns / 5 + (int64_t)(upload->random % (uint64_t)(ns / 5 * 2 + 1));
}

// While it is claimed. Where its file stays, who comes after this process takes it for a new one.
static void finish(const struct upload *upload, struct push_window *window)
{
	window->is_done = true;
	if (upload->uploader->removes && unlink(window->path) != 0 && errno != ENOENT)
		say("push: cannot remove %s, so it is sent or dropped again: %s", window->path,
		    strerror(errno));
}

static void drop(struct upload *upload, struct push_window *window, enum push_drop why,
                 uint64_t samples)
{
	struct push_counts *counts = upload->uploader->counts;

	counts->dropped_windows++;
	counts->dropped_samples[why] += samples;
	finish(upload, window);
}

static void postpone(struct upload *upload, struct push_window *window,
                     const struct delivery *delivery)
{
	if (delivery->has_sent) { // a part of it: the server is there
		upload->wait_ns = FIRST_WAIT_NS;
		upload->failures = 0;
	}
	int64_t wait_ns = jittered(upload, upload->wait_ns);

	window->tries++;
	upload->failures++;
	upload->uploader->counts->retries++;
	upload->is_misconfigured = delivery->verdict == VERDICT_CONFIGURATION;
	if (upload->is_misconfigured)
		wait_ns = MAX_WAIT_NS;
	if (delivery->retry_after_ns)
		wait_ns = delivery->retry_after_ns;
	upload->next_ns = clock_now_ns() + wait_ns;
	upload->wait_ns = upload->wait_ns * 2 < MAX_WAIT_NS ? upload->wait_ns * 2 : MAX_WAIT_NS;
}

static void note_success(struct upload *upload, struct push_window *window)
{
	upload->wait_ns = FIRST_WAIT_NS;
	upload->next_ns = 0;
	upload->failures = 0;
	upload->is_misconfigured = false;
	finish(upload, window);
	push_queue_note_success(&upload->queue);
}

static void note_sent(struct upload *upload, struct push_window *window,
                      const struct delivery *delivery)
{
	if (delivery->text)
		tell(upload, window, delivery, delivery->samples ? "the others are sent" : "sent");
	note_success(upload, window);
}

static void try_again(struct upload *upload, struct push_window *window,
                      const struct delivery *delivery, const char *consequence)
{
	tell(upload, window, delivery, consequence);
	postpone(upload, window, delivery);
}

// Tries a window again that the server fails at, until it has taken enough others meanwhile.
static void note_faulty(struct upload *upload, struct push_window *window,
                        const struct delivery *delivery)
{
	if (delivery->has_sent)
		window->n_overtaken = 0; // it fails at another part
	window->has_failed = true;
	if (window->n_overtaken + 1 < POISON_FAILURES) {
		try_again(upload, window, delivery, "it will be tried again");
		return;
	}
	drop(upload, window, PUSH_POISON, delivery->samples);
	tell(upload, window, delivery, "dropped, as it takes others");
}

static void give_up(struct upload *upload, struct push_window *window,
                    const struct delivery *delivery, enum push_drop why)
{
	tell(upload, window, delivery, "dropped");
	drop(upload, window, why, delivery->samples);
}

// The file stays: nobody knows what it is.
static void leave_out(struct upload *upload, struct push_window *window,
                      const struct delivery *delivery)
{
	window->is_done = true;
	upload->uploader->counts->dropped_windows++;
	tell(upload, window, delivery, "left out");
}

// Leaves the window alone for a while: somebody else may have it, and may fail.
static void leave_to_others(struct upload *upload, struct push_window *window)
{
	window->is_done = !upload->uploader->removes;
	window->tries++;
	upload->next_ns = clock_now_ns() + LOOK_EVERY_NS;
}

static void act(struct upload *upload, struct push_window *window, const struct delivery *delivery)
{
	switch (delivery->verdict) {
	case VERDICT_SENT:
		note_sent(upload, window, delivery);
		break;
	case VERDICT_FAULTY:
		note_faulty(upload, window, delivery);
		break;
	case VERDICT_LATER:
		try_again(upload, window, delivery, "it will be tried again");
		break;
	case VERDICT_CONFIGURATION:
		try_again(upload, window, delivery, "nothing is sent until this is fixed");
		break;
	case VERDICT_REFUSED:
		give_up(upload, window, delivery, PUSH_REFUSED);
		break;
	case VERDICT_UNREADABLE:
		give_up(upload, window, delivery, PUSH_UNREADABLE);
		break;
	case VERDICT_BARRED:
		leave_out(upload, window, delivery);
		break;
	case VERDICT_GONE:
	case N_VERDICTS:
		leave_to_others(upload, window);
		break;
	}
}

// What waits may not take more room than the spool has: the oldest go, but for what another
// uploader has at hand, which goes by itself.
static void evict(struct upload *upload)
{
	const struct uploader *uploader = upload->uploader;
	uint64_t bytes;

	push_queue_waiting(&upload->queue, &bytes);
	for (size_t i = 0; i < upload->queue.count && uploader->removes; i++) {
		struct push_window *window = &upload->queue.items[i];
		struct delivery delivery;
		if (!uploader->spool_bytes || bytes <= uploader->spool_bytes)
			return;
		if (window->is_done)
			continue;
		bytes -= window->size;
		if (delivery_claim(uploader, window, &delivery))
			drop(upload, window, PUSH_EVICTED, delivery.samples);
		delivery_deinit(&delivery);
	}
}

static void look(struct upload *upload)
{
	struct push_counts *counts = upload->uploader->counts;
	uint64_t bytes;

	push_queue_begin(&upload->queue);
	upload->all_seen = true;
	for (const char *const *path = upload->uploader->paths; *path; path++)
		if (!push_queue_look(&upload->queue, *path) && !upload->uploader->follows) {
			upload->all_seen = false;
			say("push: %s: %s", *path, strerror(errno));
		}
	push_queue_end(&upload->queue);
	evict(upload);
	counts->spool_windows = push_queue_waiting(&upload->queue, &bytes);
	counts->spool_bytes = bytes;
	const struct push_window *oldest = push_queue_oldest(&upload->queue);
	counts->oldest_ns = oldest ? oldest->time_ns : 0;
}

// Notes the end when it comes; what is left then has a time of its own.
static void look_for_end(struct upload *upload)
{
	const struct uploader *uploader = upload->uploader;
	const int64_t since_ns = asked_ns ? asked_ns : uploader->counts->ending_ns;

	if (upload->deadline_ns || !since_ns)
		return;
	upload->deadline_ns = since_ns + FLUSH_NS;
	upload->failures = 0;
	upload->wait_ns = FIRST_WAIT_NS;
	upload->next_ns = 0;
}

// Ended by a signal, too.
static void rest(int64_t until_ns)
{
	int64_t wait_ns = until_ns - clock_now_ns();

	if (wait_ns > LOOK_EVERY_NS)
		wait_ns = LOOK_EVERY_NS;
	if (wait_ns > 0)
		poll(NULL, 0, (int)(wait_ns / NS_PER_MS) + 1);
}

// False: nothing more is tried, as the end has come and the server is away, or the time is over.
static bool may_go_on(struct upload *upload)
{
	look_for_end(upload);
	if (!upload->deadline_ns && upload->uploader->follows)
		return true;
	if (upload->deadline_ns && upload->next_ns > upload->deadline_ns)
		return false;
	return !upload->is_misconfigured && upload->failures < FLUSH_FAILURES &&
	       (!upload->deadline_ns || clock_now_ns() < upload->deadline_ns);
}

// For http_watch: nothing goes on when the time is over that the end has.
static bool is_in_time(void *context)
{
	struct upload *upload = context;

	look_for_end(upload);
	return !upload->deadline_ns || clock_now_ns() < upload->deadline_ns;
}

static void step(struct upload *upload, struct push_window *window)
{
	struct delivery delivery;

	if (upload->next_ns > clock_now_ns()) {
		rest(upload->next_ns);
		return;
	}
	deliver(upload->uploader, upload->http, window, &delivery);
	act(upload, window, &delivery);
	delivery_deinit(&delivery);
}

static void upload_all(struct upload *upload)
{
	int64_t looked_ns = 0;

	while (may_go_on(upload)) {
		const int64_t now_ns = clock_now_ns();
		struct push_window *window = push_queue_next(&upload->queue);
		// At the end at once: the last window was written just before.
		if (!looked_ns || now_ns - looked_ns >= LOOK_EVERY_NS ||
		    (!window && upload->deadline_ns)) {
			look(upload);
			looked_ns = now_ns;
			window = push_queue_next(&upload->queue);
		}
		if (window)
			step(upload, window);
		else if (upload->deadline_ns || !upload->uploader->follows)
			break;
		else
			rest(looked_ns + LOOK_EVERY_NS);
	}
	look(upload);
}

static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	sigset_t none;

	asked_ns = 0;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL); // those that come before are pending, not lost
}

static uint64_t dropped_samples(const struct push_counts *counts)
{
	uint64_t n = 0;

	for (size_t i = 0; i < N_PUSH_DROPS; i++)
		n += counts->dropped_samples[i];
	return n;
}

static void sum_up(const struct upload *upload)
{
	const struct uploader *uploader = upload->uploader;
	const struct push_counts *counts = uploader->counts;
	const char *url = uploader->wishes.destination->url;

	if (uploader->quiet || uploader->dry)
		return;
	if (counts->maybe_twice_samples)
		say("push: %" PRIu64
		    " samples may be there twice, as no answer came the first time",
		    (uint64_t)counts->maybe_twice_samples);
	say("pushed %" PRIu64 " windows (%" PRIu64 " samples) to %.*s; dropped %" PRIu64
	    " windows (%" PRIu64 " samples); %" PRIu64 " window%s left",
	    (uint64_t)counts->sent_windows, (uint64_t)counts->sent_samples, host_length(url), url,
	    (uint64_t)counts->dropped_windows, dropped_samples(counts),
	    (uint64_t)counts->spool_windows, counts->spool_windows == 1 ? " is" : "s are");
}

// A crash leaves no copy of the credentials. A limit of one byte is too little for a core file, and
// keeps the kernel from asking the program that core_pattern may name, which 0 would not
// (fs/coredump.c).
static void leave_no_core(void)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_CORE, &limit);
	limit.rlim_cur = limit.rlim_max = limit.rlim_max < 1 ? limit.rlim_max : 1;
	setrlimit(RLIMIT_CORE, &limit);
}

struct error *uploader_run(const struct uploader *uploader)
{
	struct upload upload = {
	    .uploader = uploader,
	    .wait_ns = FIRST_WAIT_NS,
	    .random = hash_mix((uint64_t)getpid(), (uint64_t)clock_now_ns()),
	};
	const struct push_counts *counts = uploader->counts;
	struct error *error = uploader->dry ? NULL : http_create(uploader->ca_file, &upload.http);

	if (error)
		return error;
	if (upload.http)
		http_watch(upload.http, is_in_time, &upload);
	if (uploader->header_file)
		leave_no_core();
	catch_signals();
	upload_all(&upload);
	sum_up(&upload);
	http_destroy(upload.http);
	push_queue_deinit(&upload.queue);
	if (upload.all_seen && !counts->spool_windows && !counts->dropped_windows &&
	    !dropped_samples(counts))
		return NULL;
	return error_create(EXIT_STATUS_OUTPUT, "not everything could be pushed");
}

// SPDX-License-Identifier: MIT
// error: what went wrong, said where the context is known and printed once, by main.
#pragma once

// The exit statuses of the command, as profiler(1) documents them.
enum exit_status {
	EXIT_STATUS_OK = 0,
	EXIT_STATUS_TARGET = 1,    // the target cannot be profiled
	EXIT_STATUS_USAGE = 2,     // the command line is wrong
	EXIT_STATUS_OUTPUT = 3,    // the profile cannot be written
	EXIT_STATUS_DEADLOCK = 10, // profiler dump --check: there is one
	EXIT_STATUS_BLOCKED = 11,  // likewise: a thread is blocked for long
	EXIT_STATUS_SLOWER = 10,   // profiler diff --check: a function is, for certain
	EXIT_STATUS_UNSURE = 11,   // likewise: the recordings are too short to tell
	EXIT_STATUS_CANNOT_RUN = 126,
	EXIT_STATUS_NOT_FOUND = 127,
	EXIT_STATUS_UNREAD = 141, // who reads a text has ended; as if SIGPIPE had killed us
};

struct error;

// A new error with a message in printf's manner, one line without a newline, and the exit
// status that the command ends with because of it. The caller owns it; never NULL.
struct error *error_create(enum exit_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));

// Frees the error; NULL is accepted.
void error_destroy(struct error *error);

// The message, owned by the error.
const char *error_message(const struct error *error);

enum exit_status error_status(const struct error *error);

static inline void error_cleanup(struct error **error)
{
	error_destroy(*error);
}
#define _cleanup_error_ __attribute__((cleanup(error_cleanup)))

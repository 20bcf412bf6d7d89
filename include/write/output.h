// SPDX-License-Identifier: MIT
// output: the file that the profile goes to, never seen half written.
//
// Opened (and refused) before the target is touched. A regular file is written in its directory
// without a name, which it gets at the end, so that nothing is left of a run that is killed; where
// the file system cannot do that, under a name of its own. What stood there is untouched until
// then, and hands its permissions on. Pipes, devices and open descriptors ("-", /dev/stdout,
// /dev/fd/N) are written to as they are (writing.h); opening a named pipe waits for its reader, or
// until the user wants to end.
//
// Symbolic links are followed, and the file that they lead to is replaced, so that a link stays
// one; but no link anywhere on the way is followed, nor a pipe opened, that another user left in a
// sticky directory that all may write to.
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct error;
struct output;

// Opens the output. `path`: "-" is stdout; NULL: the name is given to output_finish (a name that
// holds the pid of a command yet to start), in the current directory. `binary`: refuse a
// terminal. On success *ret is owned by the caller.
struct error *output_open(const char *path, bool binary, struct output **ret);

// Says where a link on the way to the directory is not followed (see above), or that it is not
// there; NULL: neither.
struct error *output_check_directory(const char *path);

// Says that it is a text for people, such as a dump: if a pipe's reader has ended, as head(1) does,
// nothing is lost, and the error is EXIT_STATUS_UNREAD.
void output_set_text(struct output *output);

// Returns the stream to write to, owned by the output. Fully buffered.
FILE *output_stream(struct output *output);

// Returns the descriptor under the stream, for a writer that writes for long and does not use the
// stream.
int output_fd(const struct output *output);

// Puts the file in its place before it is written: it can be seen growing, and stays if the
// profiler is killed. `path`: as for output_finish, which is still to be called, with NULL.
struct error *output_publish(struct output *output, const char *path);

// Returns the error of a write to the descriptor that failed with this errno.
struct error *output_refuse(const struct output *output, int number);

// Flushes and closes, and puts the file in its place; `path` is for an output opened with NULL,
// else NULL. A full disk or a closed pipe is an error here (EXIT_STATUS_OUTPUT).
struct error *output_finish(struct output *output, const char *path);

// Does the same for an output opened with NULL, under a name that is free: STEM and SUFFIX, or with
// "-1", "-2" and so on between them. What is there stays.
struct error *output_finish_new(struct output *output, const char *stem, const char *suffix);

// Returns where it went, for messages: "stdout" or the path; valid until output_destroy.
const char *output_name(const struct output *output);

// Removes the file if it was not finished, and frees; NULL is accepted.
void output_destroy(struct output *output);

// Finishes the output, which was opened with a path, unless there is an error already, and destroys
// it. Returns the error; NULL: none.
struct error *output_end(struct output *output, struct error *error);

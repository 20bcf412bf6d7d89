// SPDX-License-Identifier: MIT
// untrusted_text: asks processes and servers that may never answer. Another process asks
// (untrusted_file.h): this one waits for a second, or for ten if the machine is busy.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { UNTRUSTED_COMMAND_BYTES = 4096 };

// Returns a process's command line as one line of text, with spaces between its words, cut after
// UNTRUSTED_COMMAND_BYTES. "" if it has none, or has ended; NULL: no answer. The caller frees.
char *untrusted_command(int pid);

// Returns the value of a variable in the environment that the process was started with, cut after
// UNTRUSTED_COMMAND_BYTES; NULL: there is none, it is empty, or it may not be read. *ret_told:
// false if there was no answer, or the process hides a part of it. The caller frees.
char *untrusted_variable(int pid, const char *name, bool *ret_told);

// Returns the user's name as one line of text; the number if the user has no name. NULL: no answer.
// The caller frees.
char *untrusted_user(uid_t uid);

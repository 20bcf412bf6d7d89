// SPDX-License-Identifier: MIT
// untrusted_text: what processes and servers are asked for that may never answer. Another process
// asks (untrusted_file.h): this one waits for a second, or, where the machine is busy, for ten.
#pragma once

#include <stddef.h>
#include <sys/types.h>

enum { UNTRUSTED_COMMAND_BYTES = 4096 };

// A process's command line as text of one line, spaces between its words; what is beyond
// UNTRUSTED_COMMAND_BYTES is left out. "" if it has none, or has ended; NULL: no answer. The caller
// frees.
char *untrusted_command(int pid);

// The user's name, as text of one line; the number where it has none. NULL: no answer. The caller
// frees.
char *untrusted_user(uid_t uid);

// SPDX-License-Identifier: MIT
// opener: a process of the profiler's that finds and opens files for it, and asks for what others
// may keep to themselves.
//
// A file server that does not answer holds whoever asks it, for ever and against all signals. So
// this process asks, and is left behind if it does not come back. It also takes on other users'
// rights. It is started when it is first needed; there is one at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "file_user.h"

enum opener_way {
	OPENER_PATH,    // a path in the profiler's own view, with the user's rights
	OPENER_BELOW,   // a path below the root directory of thread `tid`, likewise, even if a link
	                // is absolute
	OPENER_LINK,    // a link of the kernel's in /proc, with the profiler's own rights
	OPENER_COMMAND, // no file: the command line of process `tid`
	OPENER_USER,    // no file: the name of the user whose id is `uid`
	OPENER_VARIABLE, // no file: a variable of the environment of process `tid`; its name is
	                 // `path`
};

enum { OPENER_PATH_BYTES = 4096 + 128, OPENER_TEXT_BYTES = 4096 };

struct opener_request {
	enum opener_way way;
	int tid; // the thread whose mounts are used; 0: the profiler's own
	uid_t uid;
	bool no_links; // OPENER_BELOW: no symbolic link on the way
	struct file_user user;
	uint64_t device, inode; // of the file, if known; both 0: any file
	uint64_t max_bytes;     // the largest copy that may be made
	int64_t time_ns;        // for all of it
	char path[OPENER_PATH_BYTES];
};

struct opener_reply {
	int error;
	bool is_progress;   // another reply follows
	bool is_copy;       // the descriptor is that of a copy in memory
	bool is_last;       // the process has become somebody else, and ends
	struct stat status; // of the file itself
	uint32_t n_bytes;   // of text, which has no NUL at its end
	char text[OPENER_TEXT_BYTES];
};

// Opens a regular file that stores something (regular_file.h). A file that a server holds comes as
// a copy in memory: reading it waits for nobody. -1 with errno: ENODEV if it is not such a file,
// ESTALE if it is not the one that was asked for, EFBIG if it is larger than may be copied,
// ETIMEDOUT if there was no answer within OPENER_WAIT_NS, or it took longer than time_ns.
int opener_open(const struct opener_request *request, struct opener_reply *ret);

// Asks for a text. False with errno: ETIMEDOUT as above.
bool opener_ask(const struct opener_request *request, struct opener_reply *ret);

// Ends the opener's process, if there is one.
void opener_end(void);

#define OPENER_WAIT_NS INT64_C(1000000000)

// SPDX-License-Identifier: MIT
// syscall_table: says what a stop does to each system call of Linux, by the kernel's source (6.18;
// the table has a row for each number below SYSCALL_TABLE_END), and what can be done about it.
//
// To the kernel, an interrupt of ptrace is a signal that nobody handles: a call reacts to it where
// it asks signal_pending(). A call that asks only fatal_signal_pending(), or neither, shows no
// trace of a stop.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SYSCALL_TABLE_END = 470 };

enum syscall_fate {
	SYSCALL_NOT_CUT,   // goes on: it does not wait, or only death ends its waits
	SYSCALL_RESTARTED, // the kernel begins it again by itself, with nothing done
	SYSCALL_WHOLE,     // ends with an error, with nothing done: it is entered again as it was
	SYSCALL_CONTINUED, // that, or ends with a part done: it goes on behind that part
	SYSCALL_LEFT,      // ends with an error; entered again it could do something twice
};

enum syscall_list {
	LIST_NONE,
	LIST_BUFFERS, // struct iovec[] is argument 2, their number is argument 3
	LIST_MESSAGE, // struct msghdr is argument 2
};

// What a call counts, and how much of it the call waits for.
enum syscall_wish {
	WISH_ALL,     // bytes; all that is asked for
	WISH_RECEIVE, // bytes; from a socket or terminal, as many as its options say (descriptor.h)
	WISH_LEAST,   // events of struct io_event, the least number of them
	WISH_MESSAGES_IN, // messages of struct mmsghdr
	WISH_MESSAGES_OUT,
	WISH_COMPLETIONS, // what it counts is done; the wait that follows is cut (io_uring)
};

// How a call continues after a part. Arguments are numbered from 1; 0: it does not have that one.
struct syscall_rest_rule {
	uint8_t descriptor; // its kind decides whether the call can be cut
	uint8_t kinds;      // enum descriptor_kind: the kinds on which it is cut
	uint8_t address;    // without it the kernel keeps the position
	uint8_t count, least, position, flags;
	uint8_t sender; // where the sender's address goes; its room, in memory, is the next one
	uint8_t unit;   // bytes in memory for each one that is counted; 0: 1
	enum syscall_list list;
	enum syscall_wish wish;
	uint16_t part_nr;     // the call that moves one buffer of a list
	uint16_t socket_nr;   // and the one for a socket, which can be told to raise no SIGPIPE
	uint32_t refused;     // flags with which there can be no rest
	uint32_t added;       // flags for the rest
	bool keeps_file_size; // the rest must not raise SIGXFSZ
};

struct syscall_row {
	const uint16_t *calls;
	size_t n_calls;
	struct {
		uint8_t argument; // numbered from 1; 0: whatever it is
		uint32_t value;
	} when[2];
	uint8_t
	    kinds; // of the descriptor that is argument 1 (enum descriptor_kind); 0: whatever it is
	enum syscall_fate fate;
	uint8_t error;    // with which it tells of the interruption; 0: EINTR
	bool undisturbed; // begins at its first byte again: not to be stopped until it is done
	const struct syscall_rest_rule *rest;
	const char *kernel; // the kernel functions that show it
};

// Returns the call's row; NULL for a number that is not in the table. `arguments`: all six.
const struct syscall_row *syscall_table_find(int64_t nr, const uint64_t arguments[6]);

// SPDX-License-Identifier: MIT
// descriptor: tells what a descriptor of the target is, as far as it decides what a stop does to a
// call. Asks neither the program nor a file system that may be slow.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum descriptor_kind {
	DESCRIPTOR_SOCKET = 1,
	DESCRIPTOR_PIPE = 2, // and FIFOs
	DESCRIPTOR_PTY = 4,  // a pseudo-terminal, either side
	DESCRIPTOR_LINE = 8, // another terminal
	DESCRIPTOR_MEMORY =
	    16, // a device that gives or takes any number of bytes: zero, urandom, ...
	DESCRIPTOR_FILE = 32,
	DESCRIPTOR_OTHER = 64, // another device, a directory, ...
	DESCRIPTOR_UNKNOWN = 128,
	DESCRIPTOR_TERMINAL = DESCRIPTOR_PTY | DESCRIPTOR_LINE,
};

// Tells the kind of a descriptor of the thread. Never blocks.
enum descriptor_kind descriptor_kind(int tid, int number);

// True if it lets a call wait (no O_NONBLOCK), or if that is not known.
bool descriptor_blocks(int tid, int number);

// True if it has O_DIRECT: each write to such a pipe makes packets of its own.
bool descriptor_is_direct(int tid, int number);

struct socket_facts {
	int type;           // SOCK_STREAM, ...
	uint64_t least;     // SO_RCVLOWAT: bytes that a receiving call waits for
	bool notes_sending; // SO_TIMESTAMPING of what is sent: each call leaves a note
	bool has_timeout;   // SO_RCVTIMEO or SO_SNDTIMEO
	bool peeks_on;      // SO_PEEK_OFF: a peek begins behind the one before
	bool is_unix;       // AF_UNIX
	bool is_at_mark;    // an urgent byte comes next, before which a call ends
	bool tells_senders; // SO_PASSCRED and others: a call ends before another sender's bytes
};

// Asks a socket of the thread, in process `pid`, through a duplicate (pidfd_getfd(2)). False with
// errno if none can be made: ENOSYS before Linux 5.6; EBADF if the thread does not share its
// process's descriptors, or its main thread has ended, before 6.9.
bool descriptor_socket(int pid, int tid, int number, struct socket_facts *ret);

// Takes from a socket of the thread the error that it keeps for its next call (SO_ERROR), likewise.
void descriptor_take_error(int pid, int tid, int number);

// What a read of a terminal waits for.
struct terminal_facts {
	uint64_t least;   // so many bytes (VMIN); 0: it ends by itself, at the end of a line
	bool has_timeout; // or for so long (VTIME): in all if least is 0, else after each byte
};

// Asks a terminal of the thread, in process `pid`. False with errno if that is not known.
bool descriptor_terminal(int pid, int tid, int number, struct terminal_facts *ret);

// True if RLIMIT_FSIZE lets the process write files of any size.
bool descriptor_may_grow(int pid);

// SPDX-License-Identifier: MIT
// syscall_messages: what a call that moves messages says of them in the memory of its thread, which
// stands. What cannot be read is judged as what keeps the call from being continued.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cmsghdr;
struct iovec;
struct msghdr;
struct syscall_caller; // syscall_rest.h

struct syscall_rest; // syscall_rest.h

// True if the message has come with control data for which it had no room: descriptors that a unix
// socket carries end the call (unix_stream_read_generic).
bool syscall_message_lost_control(const struct syscall_rest *rest);

// True if it waits for messages still, after those that it has: do_recvmmsg waits for one message
// only if that is asked for, writes back what was left of the time, and ends with a message that is
// urgent.
bool syscall_messages_are_awaited(const struct syscall_rest *rest);

// True if the last message was moved as a whole. Of a stream, it may have been in part; then what
// was sent is counted wrong in memory.
bool syscall_messages_are_whole(const struct syscall_rest *rest);

// Takes back the error that do_recvmmsg keeps for the next call on the socket when it ends after
// some messages: for a thread whose call only the profiler has cut, and that does not go on with
// it. An error of the socket's own that has come in the microseconds since is taken, too.
void syscall_messages_take_error(const struct syscall_rest *rest);

// True if the message's rest needs no control data. Descriptors go with the first byte; anything
// else may be meant for each byte (a TLS record's type). A receiver may get some with the rest.
bool syscall_message_needs_no_control(const struct syscall_rest *rest);

// Reads the lists of buffers and the messages that a call names, from the memory
// of the thread that makes it.
enum { SYSCALL_MAX_BUFFERS = 1024 }; // UIO_MAXIOV

// Reads a list of n buffers. False, as from the others, if it is not all resident, or too long.
bool syscall_read_buffers(const struct syscall_caller *caller, uint64_t address, uint64_t n,
                          struct iovec *ret);

// Reads a message's head.
bool syscall_read_message(const struct syscall_caller *caller, uint64_t address,
                          struct msghdr *ret);

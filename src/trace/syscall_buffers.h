// SPDX-License-Identifier: MIT
// syscall_buffers: reads the lists of buffers and the messages that a call names, from the memory
// of the thread that makes it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cmsghdr;
struct iovec;
struct msghdr;
struct syscall_caller; // syscall_rest.h

enum { SYSCALL_MAX_BUFFERS = 1024 }; // UIO_MAXIOV

// Reads a list of n buffers. False, as from the others, if it is not all resident, or too long.
bool syscall_read_buffers(const struct syscall_caller *caller, uint64_t address, uint64_t n,
                          struct iovec *ret);

// Reads a message's head.
bool syscall_read_message(const struct syscall_caller *caller, uint64_t address,
                          struct msghdr *ret);

// Reads the head of a piece of control data.
bool syscall_read_control(const struct syscall_caller *caller, uint64_t address,
                          struct cmsghdr *ret);

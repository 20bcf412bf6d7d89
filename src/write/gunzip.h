// SPDX-License-Identifier: MIT
// gunzip: unpacks a gzip file (RFC 1952) of one member or more.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct error;

// Unpacks at most `max` bytes into *ret, owned by the caller. Returns an error if the file is
// damaged, cut off or larger; `name` is the file's, for the message. Bytes after the last member
// that do not begin another one are ignored.
struct error *gunzip(const char *name, const uint8_t *bytes, size_t size, size_t max, uint8_t **ret,
                     size_t *ret_size);

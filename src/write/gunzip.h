// SPDX-License-Identifier: MIT
// gunzip: what a gzip file holds (RFC 1952), of one member or more.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct error;

// At most `max` bytes: *ret, owned by the caller. An error where it is damaged, cut or larger, with
// `name` for whose it is; bytes after the last member that are no other one's are left out.
struct error *gunzip(const char *name, const uint8_t *bytes, size_t size, size_t max, uint8_t **ret,
                     size_t *ret_size);

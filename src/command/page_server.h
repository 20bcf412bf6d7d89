// SPDX-License-Identifier: MIT
// page_server: shows a page to browsers of this machine by HTTP (profiler view --serve), so that it
// can be seen through an ssh tunnel. It listens on the loopback interface alone. The page's address
// has a random token, as other users of the machine can connect; and requests by another host's
// name are refused, as pages of the web could make them (DNS rebinding).
#pragma once

#include <stdint.h>

struct error;

struct page_server {
	int fd;
	uint16_t port;
	char path[64]; // of the page's address: "/" and the token
};

// Listens on that port of 127.0.0.1; 0: on any free one. The caller closes ret->fd.
struct error *page_server_open(uint16_t port, struct page_server *ret);

// Answers requests, each in a process of its own, until SIGINT, SIGTERM or SIGHUP. `page_fd` is the
// page's file, read from its beginning.
void page_server_run(const struct page_server *server, int page_fd);

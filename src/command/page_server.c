// SPDX-License-Identifier: MIT
#include "page_server.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"
#include "memory.h"
#include "text.h"

enum {
	MAX_CONNECTIONS = 16,
	MAX_REQUEST_BYTES = 16 << 10,
	REQUEST_PATIENCE_S = 10, // for a whole request
	PAGE_PATIENCE_S = 600,   // for the whole page
};

static volatile sig_atomic_t asked_to_end;

static struct error *listen_on(struct page_server *server, uint16_t port)
{
	const int yes = 1;
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_port = htons(port),
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);

	server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	setsockopt(server->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (server->fd < 0 || bind(server->fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(server->fd, MAX_CONNECTIONS) < 0 ||
	    getsockname(server->fd, (struct sockaddr *)&address, &size) < 0)
		return error_create(EXIT_STATUS_OUTPUT, "--serve: cannot listen on port %d: %s%s",
		                    port, strerror(errno),
		                    port ? "; --serve=0 takes a free one" : "");
	server->port = ntohs(address.sin_port);
	return NULL;
}

struct error *page_server_open(uint16_t port, struct page_server *ret)
{
	uint64_t token[2] = {0};

	while (getrandom(token, sizeof(token), 0) != sizeof(token))
		if (errno != EINTR)
			return error_create(EXIT_STATUS_OUTPUT,
			                    "--serve: no random numbers for an address: %s",
			                    strerror(errno));
	snprintf(ret->path, sizeof(ret->path), "/%016" PRIx64 "%016" PRIx64, token[0], token[1]);
	struct error *error = listen_on(ret, port);
	if (error && ret->fd >= 0)
		close(ret->fd);
	return error;
}

// Reads up to the empty line at a request's end. False: there is none in time, or it is too long.
static bool read_request(int fd, char request[MAX_REQUEST_BYTES])
{
	size_t length = 0;

	while (length < MAX_REQUEST_BYTES - 1) {
		const ssize_t n = read(fd, request + length, MAX_REQUEST_BYTES - 1 - length);
		if (n <= 0)
			return false;
		length += (size_t)n;
		request[length] = '\0';
		if (strlen(request) < length)
			return false; // a null byte
		if (strstr(request, "\r\n\r\n"))
			return true;
	}
	return false;
}

// Returns the value of the request's only line of that name; NULL: there is none, or several.
static const char *find_header(const char *request, const char *name)
{
	const char *found = NULL;

	for (const char *line = strstr(request, "\r\n"); line; line = strstr(line, "\r\n")) {
		line += strlen("\r\n");
		if (strncasecmp(line, name, strlen(name)) != 0 || line[strlen(name)] != ':')
			continue;
		if (found)
			return NULL;
		found = line + strlen(name) + 1;
	}
	return found ? found + strspn(found, " \t") : NULL;
}

// With any port: an ssh tunnel may have another one.
static bool is_this_machine(const char *host)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

	for (size_t i = 0; host && i < array_size(names); i++) {
		const size_t length = strlen(names[i]);
		if (strncasecmp(host, names[i], length) == 0 && strchr(":\r", host[length]))
			return true;
	}
	return false;
}

// True if the request's first line is "GET path HTTP/...". Takes equally long for each wrong path.
static bool asks_for(const char *request, const char *path)
{
	const char *asked = request + strlen("GET ");
	const size_t length = strcspn(asked, " \r");
	unsigned int differs = length != strlen(path);

	for (size_t i = 0; i < length && path[i]; i++)
		differs |= (unsigned int)(asked[i] ^ path[i]);
	return !differs;
}

// Returns the answer's status line.
static const char *judge(const struct page_server *server, const char *request)
{
	if (!text_begins_with(request, "GET "))
		return "405 Method Not Allowed\r\nAllow: GET";
	if (!is_this_machine(find_header(request, "Host")))
		return "403 Forbidden";
	if (!asks_for(request, server->path))
		return "404 Not Found";
	return NULL;
}

static void send_page(int fd, int page_fd)
{
	struct stat status;
	off_t sent = 0;

	if (fstat(page_fd, &status) < 0)
		return;
	dprintf(fd,
	        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
	        "Content-Length: %jd\r\nConnection: close\r\nCache-Control: no-store\r\n"
	        "Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
	        "X-Frame-Options: DENY\r\n\r\n",
	        (intmax_t)status.st_size);
	while (sent < status.st_size &&
	       sendfile(fd, page_fd, &sent, (size_t)(status.st_size - sent)) > 0)
		;
}

// In a process of its own, which ends by SIGALRM if the client is too slow.
static void answer(const struct page_server *server, int fd, int page_fd)
{
	static char request[MAX_REQUEST_BYTES];

	alarm(REQUEST_PATIENCE_S);
	const char *refusal =
	    read_request(fd, request) ? judge(server, request) : "400 Bad Request";
	alarm(PAGE_PATIENCE_S);
	if (refusal)
		dprintf(fd, "HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		        refusal);
	else
		send_page(fd, page_fd);
}

static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};

static void restore_signals(void)
{
	sigset_t none;

	for (size_t i = 0; i < array_size(watched); i++)
		signal(watched[i], SIG_DFL);
	signal(SIGALRM, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void accept_one(const struct page_server *server, int page_fd, int *n_children)
{
	const pid_t parent = getpid();
	_cleanup_close_ int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	const pid_t pid = fork();

	*n_children += pid > 0;
	if (pid != 0)
		return;
	restore_signals();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		answer(server, fd, page_fd);
	_exit(EXIT_STATUS_OK);
}

static void note_signal(int number)
{
	asked_to_end |= number != SIGCHLD;
}

// Signals come only while ppoll(2) waits. *ret_waiting: the mask for that.
static void watch_signals(sigset_t *ret_waiting)
{
	const struct sigaction action = {.sa_handler = note_signal};
	sigset_t blocked;

	sigprocmask(SIG_BLOCK, NULL, ret_waiting);
	sigemptyset(&blocked);
	for (size_t i = 0; i < array_size(watched); i++) {
		sigaction(watched[i], &action, NULL);
		sigaddset(&blocked, watched[i]);
		sigdelset(ret_waiting, watched[i]);
	}
	sigprocmask(SIG_BLOCK, &blocked, NULL);
}

void page_server_run(const struct page_server *server, int page_fd)
{
	struct pollfd listening = {.fd = server->fd, .events = POLLIN};
	int n_children = 0;
	sigset_t waiting;

	watch_signals(&waiting);
	while (!asked_to_end) {
		const bool is_full = n_children >= MAX_CONNECTIONS;
		const int n_ready = ppoll(&listening, is_full ? 0 : 1, NULL, &waiting);
		// The browser may be among them: then there may be one connection more.
		while (n_children > 0 && waitpid(-1, NULL, WNOHANG) > 0)
			n_children--;
		if (n_ready > 0)
			accept_one(server, page_fd, &n_children);
	}
}

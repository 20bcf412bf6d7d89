/* expect: dns find_backend
 * Each request looks a name up, and the name server does not answer. */
#include <arpa/inet.h>
#include <netdb.h>
#include <resolv.h>
#include <string.h>
#include <sys/socket.h>
#include "corpus.h"

static struct sockaddr_in silent = {.sin_family = AF_INET};

NOINLINE static int find_backend(const char *name)
{
	struct addrinfo *found = NULL;
	int error = getaddrinfo(name, "80", NULL, &found);
	if (!error)
		freeaddrinfo(found);
	return error;
}

static void *serve(void *arg)
{
	res_init();
	_res.nscount = 1;
	_res.nsaddr_list[0] = silent;
	_res.retrans = 1;
	for (;;)
		find_backend("backend.internal.example");
	return arg;
}

int main(void)
{
	int port = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof silent;
	silent.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(port, (struct sockaddr *)&silent, size) ||
	    getsockname(port, (struct sockaddr *)&silent, &size))
		abort();
	run_threads(2, serve);
}

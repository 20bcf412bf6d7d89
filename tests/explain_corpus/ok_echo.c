/* expect: none
 * An echo server with a thread for each of four connections; its clients ask sixty times a second.
 */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "corpus.h"

enum { CLIENTS = 4 };

static int listener;

NOINLINE static int echo(int client)
{
	char text[512];
	ssize_t n = read(client, text, sizeof text);
	for (volatile int i = 0; n > 0 && i < 400000; i++)
		;
	return n > 0 && write(client, text, (size_t)n) == n;
}

static void *serve(void *arg)
{
	int client = accept(listener, NULL, NULL);
	while (echo(client))
		;
	return arg;
}

static void ask(const struct sockaddr_in *address)
{
	char text[512] = "hello";
	int server = socket(AF_INET, SOCK_STREAM, 0);
	alarm(90);
	if (connect(server, (const struct sockaddr *)address, sizeof *address))
		_exit(1);
	while (write(server, text, 5) == 5 && read(server, text, sizeof text) > 0)
		nap_ms(16);
	_exit(0);
}

int main(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, CLIENTS) ||
	    getsockname(listener, (struct sockaddr *)&address, &size))
		abort();
	for (int i = 0; i < CLIENTS; i++)
		if (fork() == 0)
			ask(&address);
	run_threads(CLIENTS, serve);
}

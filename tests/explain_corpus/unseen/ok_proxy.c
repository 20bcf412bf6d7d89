/* expect: none
 * A proxy passes on what its client and its server send, fifty times a second. */
#include <poll.h>
#include <sys/socket.h>
#include "../corpus.h"

static int client[2], server[2];

NOINLINE static void pass_on(int from, int to)
{
	char text[512];
	const ssize_t n = read(from, text, sizeof(text));
	if (n <= 0 || write(to, text, (size_t)n) != n)
		exit(0);
}

static void *proxy(void *arg)
{
	struct pollfd ends[] = {{.fd = client[0], .events = POLLIN},
	                        {.fd = server[0], .events = POLLIN}};
	for (;;) {
		poll(ends, 2, -1);
		if (ends[0].revents)
			pass_on(client[0], server[0]);
		if (ends[1].revents)
			pass_on(server[0], client[0]);
	}
	return arg;
}

static void ask(void)
{
	char text[512] = "question";
	while (write(client[1], text, 100) == 100 && read(client[1], text, sizeof(text)) > 0)
		nap_ms(20);
}

static void answer(void)
{
	char text[512];
	while (read(server[1], text, sizeof(text)) > 0 && write(server[1], text, 400) == 400)
		continue;
}

int main(void)
{
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, client) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, server))
		return 1;
	for (int i = 0; i < 2; i++)
		if (fork() == 0) {
			alarm(90);
			close(client[0]);
			close(server[0]);
			close(i == 0 ? server[1] : client[1]);
			i == 0 ? ask() : answer();
			_exit(0);
		}
	close(client[1]);
	close(server[1]);
	run_threads(1, proxy);
}

/* expect: sleep wait_for_result
 * A handler asks again and again whether its result is there, with a sleep in between. */
#include <sys/socket.h>
#include "corpus.h"

static _Atomic int results;

NOINLINE static void wait_for_result(int wanted)
{
	while (results < wanted)
		usleep(20000);
}

NOINLINE static void handle_request(int request, int client)
{
	char answer = 'a';
	wait_for_result(request + 1);
	if (send(client, &answer, 1, 0) != 1)
		abort();
}

static int ends[2];

static void *handler(void *arg)
{
	char text;
	for (int request = 0; recv(ends[0], &text, 1, 0) == 1; request++)
		handle_request(request, ends[0]);
	return arg;
}

static void *client(void *arg)
{
	char text = 'q';
	for (;;) {
		if (send(ends[1], &text, 1, 0) != 1)
			abort();
		nap_ms(2);
		results++;
		if (recv(ends[1], &text, 1, 0) != 1)
			abort();
	}
	return arg;
}

int main(void)
{
	pthread_t id;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		abort();
	pthread_create(&id, NULL, handler, NULL);
	run_threads(1, client);
}

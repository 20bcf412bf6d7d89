/* expect: none
 * A server with few requests: it waits for them in epoll_wait, and answers each at once. */
#include <sys/epoll.h>
#include <sys/socket.h>
#include "corpus.h"

static int ends[2];

NOINLINE static char answer(char question)
{
	for (volatile int i = 0; i < 200000; i++)
		;
	return question;
}

static void *serve(void *arg)
{
	struct epoll_event event = {.events = EPOLLIN};
	int poll = epoll_create1(0);
	char text;
	epoll_ctl(poll, EPOLL_CTL_ADD, ends[0], &event);
	for (;;) {
		if (epoll_wait(poll, &event, 1, -1) != 1 || read(ends[0], &text, 1) != 1)
			continue;
		text = answer(text);
		if (write(ends[0], &text, 1) != 1)
			abort();
	}
	return arg;
}

int main(void)
{
	char text = 'q';
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		abort();
	if (fork() == 0)
		for (alarm(90), close(ends[0]);
		     write(ends[1], &text, 1) == 1 && read(ends[1], &text, 1) == 1;)
			nap_ms(30);
	close(ends[1]);
	run_threads(1, serve);
}

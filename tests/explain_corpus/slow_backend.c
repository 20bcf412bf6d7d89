/* expect: network|socket|pipe ask_backend
 * Requests wait for the answers of another process, which is slow. */
#include <sys/socket.h>
#include "corpus.h"

static int ends[2];

NOINLINE static char ask_backend(char question)
{
	char answer;
	if (write(ends[0], &question, 1) != 1 || read(ends[0], &answer, 1) != 1)
		abort();
	return answer;
}

NOINLINE static void rank(char *text)
{
	for (; read(ends[1], text, 1) == 1;) {
		for (volatile int i = 0; i < 30000000; i++)
			;
		if (write(ends[1], text, 1) != 1)
			return;
	}
}

static void *request(void *arg)
{
	for (char text = 'q';; text = ask_backend(text))
		;
	return arg;
}

int main(void)
{
	char text;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		abort();
	if (fork() == 0) {
		alarm(90);
		close(ends[0]);
		rank(&text);
		_exit(0);
	}
	close(ends[1]);
	run_threads(1, request);
}

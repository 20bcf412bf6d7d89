/* expect: none
 * Threads of a server take turns at waiting for a client: one accepts, the others wait for the
 * lock. */
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include "corpus.h"

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int listener;

static void serve(int c)
{
	char b;
	if (recv(c, &b, 1, 0) == 1)
		send(c, &b, 1, 0);
	close(c);
}

static void *worker(void *a)
{
	for (;;) {
		pthread_mutex_lock(&turn);
		int c = accept(listener, 0, 0);
		pthread_mutex_unlock(&turn);
		serve(c);
	}
	return a;
}

int main(void)
{
	alarm(90);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in d = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	bind(listener, (void *)&d, sizeof(d));
	listen(listener, 9);
	socklen_t l = sizeof(d);
	getsockname(listener, (void *)&d, &l);
	pthread_t t;
	for (int i = 0; i < 6; i++)
		pthread_create(&t, 0, worker, 0);
	puts("ready");
	fflush(stdout);
	for (;;) {
		usleep(50000);
		int c = socket(AF_INET, SOCK_STREAM, 0);
		connect(c, (void *)&d, sizeof(d));
		char b = 'x';
		send(c, &b, 1, 0);
		recv(c, &b, 1, 0);
		close(c);
	}
}

/* expect: network|socket fetch_row
 * Each page asks a slow database over TCP, one row after the other. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include "../corpus.h"

static int connection;

NOINLINE static int fetch_row(int number)
{
	int row = 0;
	if (send(connection, &number, sizeof(number), 0) != sizeof(number) ||
	    recv(connection, &row, sizeof(row), MSG_WAITALL) != sizeof(row))
		exit(1);
	return row;
}

NOINLINE static int format_row(int row)
{
	volatile int sum = row;
	for (int i = 0; i < 200000; i++)
		sum += i;
	return sum;
}

static void *make_page(void *arg)
{
	for (int i = 0;; i++)
		format_row(fetch_row(i));
	return arg;
}

static void answer(int listener)
{
	const int client = accept(listener, NULL, NULL);
	int number;
	alarm(90);
	while (recv(client, &number, sizeof(number), MSG_WAITALL) == sizeof(number)) {
		nap_ms(12);
		send(client, &number, sizeof(number), MSG_NOSIGNAL);
	}
}

int main(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	const int listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &length))
		return 1;
	if (fork() == 0) {
		answer(listener);
		_exit(0);
	}
	close(listener);
	connection = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(connection, (struct sockaddr *)&address, length))
		return 1;
	run_threads(1, make_page);
}

// SPDX-License-Identifier: MIT
// Calls in which others see who waits, made by functions whose frames have no fixed size, so that
// only a stop would show their callers: while a thread is held it does not wait.
#include <alloca.h>
#include <linux/futex.h>
#include <sys/sem.h>

#include "torture.h"

enum { WAIT_MS = 25, MIN_MS = 3, MORE_MS = 25 };

static atomic_int condition, mutex;

static long call_futex(atomic_int *futex, int operation, long value, long other)
{
	return syscall(SYS_futex, futex, operation | FUTEX_PRIVATE_FLAG, value, other, &mutex,
	               value);
}

// Moves the waiter on to the mutex, once it waits, and unlocks that later.
static void *requeue_late(void *argument)
{
	const pid_t waiter = *(pid_t *)argument;

	while (state_of(waiter) != 'S')
		usleep(200);
	usleep(200); // where it has slept for something else on its way
	while (state_of(waiter) != 'S')
		usleep(200);
	call_futex(&mutex, FUTEX_LOCK_PI, 0, 0);
	const int value = atomic_fetch_add(&condition, 1) + 1;
	syscall(SYS_futex, &condition, FUTEX_CMP_REQUEUE_PI | FUTEX_PRIVATE_FLAG, 1, 0, &mutex,
	        value);
	sleep_ms(WAIT_MS);
	call_futex(&mutex, FUTEX_UNLOCK_PI, 0, 0);
	return NULL;
}

// Gets the mutex in its sleep. A stop would have it end without.
void wait_requeued(struct kind *kind)
{
	char *space = alloca((size_t)(16 + 16 * random_below(8)));
	pid_t tid = gettid();

	__asm__ volatile("" : : "r"(space) : "memory");
	const int value = atomic_load(&condition);
	const pthread_t other = begin(requeue_late, &tid);
	const long result = call_futex(&condition, FUTEX_WAIT_REQUEUE_PI, value, 0);
	if (result != 0)
		fault(kind, "waited", errno);
	else
		call_futex(&mutex, FUTEX_UNLOCK_PI, 0, 0);
	pthread_join(other, NULL);
}

struct semaphore {
	struct kind *kind;
	int id;
};

// Looks, for as long as it lets the other wait, whether that does.
static void *watch_waiter(void *argument)
{
	const struct semaphore *semaphore = argument;
	struct sembuf up = {.sem_op = 1};
	long n_absent = 0;

	while (semctl(semaphore->id, 0, GETNCNT) != 1)
		usleep(200);
	const double end_s = now_s() + (MIN_MS + random_below(MORE_MS)) * 1e-3;
	while (now_s() < end_s)
		n_absent += semctl(semaphore->id, 0, GETNCNT) != 1;
	if (n_absent > 0)
		fault(semaphore->kind, "not waiting", n_absent);
	if (semop(semaphore->id, &up, 1))
		die("semop");
	return NULL;
}

// A stop would take it off the queue: others could take what is meant for it.
void wait_semaphore(struct kind *kind)
{
	char *space = alloca((size_t)(16 + 16 * random_below(8)));
	struct semaphore semaphore = {kind, semget(IPC_PRIVATE, 1, 0600)};
	struct sembuf down = {.sem_op = -1};

	__asm__ volatile("" : : "r"(space) : "memory");
	if (semaphore.id < 0)
		die("semget");
	const pthread_t watcher = begin(watch_waiter, &semaphore);
	if (semop(semaphore.id, &down,
	          1)) // the C library makes it semtimedop(2), without a timeout
		fault(kind, "waited", errno);
	pthread_join(watcher, NULL);
	semctl(semaphore.id, 0, IPC_RMID);
}

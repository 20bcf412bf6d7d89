// SPDX-License-Identifier: MIT
// The names that processes share: found by all, whole or not at all, and never more than there is
// room for.
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory.h"
#include "name_cache.h"

static struct name_key key_of(uint64_t address)
{
	return (struct name_key){
	    .device = 1, .inode = 2, .build = 3, .address = address, .code = 4};
}

static void add(struct name_cache *cache, uint64_t address, size_t n_lines, size_t name_bytes)
{
	const struct name_key key = key_of(address);
	_cleanup_free_ char *name = memory_alloc(name_bytes + 1);
	struct cached_line lines[NAME_CACHE_MAX_LINES];

	assert_true(n_lines <= NAME_CACHE_MAX_LINES);
	memset(name, 'a' + (int)(address % 26), name_bytes);
	name[name_bytes] = '\0';
	for (size_t i = 0; i < n_lines; i++)
		lines[i] = (struct cached_line){
		    name, "/a/file.c", i == 1 ? "f" : "", (uint32_t)address, (uint32_t)i, i == 2};
	name_cache_add(cache, &key, lines, n_lines);
}

// Not there: -1; else the lines, each as they were added.
static int check(const struct name_cache *cache, uint64_t address, size_t name_bytes)
{
	static struct cached_line lines[NAME_CACHE_MAX_LINES];
	const struct name_key key = key_of(address);
	const int n = name_cache_find(cache, &key, lines);

	for (int i = 0; i < n; i++) {
		assert_int_equal(strlen(lines[i].system_name), name_bytes);
		assert_int_equal(
		    strspn(lines[i].system_name, (char[]){(char)('a' + (int)(address % 26)), '\0'}),
		    name_bytes);
		assert_string_equal(lines[i].file, "/a/file.c");
		assert_string_equal(lines[i].source_name, i == 1 ? "f" : "");
		assert_int_equal(lines[i].start_line, address);
		assert_int_equal(lines[i].line, i);
		assert_int_equal(lines[i].is_plain, i == 2);
	}
	return n;
}

static void test_shared(void **state)
{
	struct name_cache *cache = name_cache_create();
	struct cached_line lines[NAME_CACHE_MAX_LINES];

	(void)state;
	assert_int_equal(check(cache, 10, 5), -1);
	const pid_t child = fork();
	if (child == 0) {
		for (size_t i = 0; i < 4; i++)
			add(cache, 10 + i, i, 5);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	for (int i = 0; i < 4; i++)
		assert_int_equal(check(cache, 10 + (uint64_t)i, 5), i);
	for (int i = 0; i < 4; i++) { // any other file, address or code
		struct name_key key = key_of(12);
		*(uint64_t *[]){&key.device, &key.inode, &key.build, &key.code}[i] += 1;
		assert_int_equal(name_cache_find(cache, &key, lines), -1);
	}
	name_cache_destroy(cache);
}

static void test_full(void **state)
{
	struct name_cache *cache = name_cache_create();
	uint64_t n = 0;

	(void)state;
	add(cache, 1, 1, 70000); // too large for any
	assert_int_equal(check(cache, 1, 70000), -1);
	while (!name_cache_is_full(cache)) {
		assert_true(n < 1000000);
		add(cache, n++, 1, 20000);
	}
	for (uint64_t i = 0; i + 1 < n; i++)
		assert_int_equal(check(cache, i, 20000), 1);
	assert_int_equal(check(cache, n - 1, 20000), -1);
	add(cache, n, 1, 1);
	assert_int_equal(check(cache, n, 1), -1);
	name_cache_destroy(cache);
}

// Several write the same, and are killed while they do.
static void test_killed(void **state)
{
	struct name_cache *cache = name_cache_create();
	uint64_t n_found = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		int fds[2];
		char byte;
		assert_int_equal(pipe(fds), 0);
		const pid_t child = fork();
		if (child == 0) {
			for (uint64_t address = 0; address < 100000; address++) {
				add(cache, address, 2, 30);
				if (address == 100 && write(fds[1], "x", 1) != 1)
					_exit(1);
			}
			_exit(0);
		}
		assert_int_equal(read(fds[0], &byte, 1), 1);
		if (i % 2)
			kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		close(fds[0]);
		close(fds[1]);
	}
	for (uint64_t address = 0; address < 100000; address++)
		n_found += check(cache, address, 30) == 2;
	assert_true(n_found > 100);
	name_cache_destroy(cache);
}

// This process has the turn: another one waits for it. Ends it.
static void assert_has_turn(struct name_cache *cache)
{
	char bytes[2];
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	const pid_t child = fork();
	if (child == 0) {
		name_cache_await_turn(cache);
		const bool written = write(fds[1], "b", 1) == 1;
		name_cache_end_turn(cache);
		_exit(!written);
	}
	poll(&(struct pollfd){.fd = fds[0], .events = POLLIN}, 1, 100);
	assert_int_equal(write(fds[1], "a", 1), 1);
	name_cache_end_turn(cache);
	assert_int_equal(read(fds[0], &bytes[0], 1), 1);
	assert_int_equal(read(fds[0], &bytes[1], 1), 1);
	assert_memory_equal(bytes, "ab", 2);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(fds[0]);
	close(fds[1]);
}

// One at a time; who is killed does not keep the turn.
static void test_turn(void **state)
{
	struct name_cache *cache = name_cache_create();

	(void)state;
	name_cache_await_turn(cache);
	assert_has_turn(cache);
	const pid_t child = fork();
	if (child == 0) {
		name_cache_await_turn(cache);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	name_cache_await_turn(cache);
	assert_has_turn(cache);
	name_cache_destroy(cache);
}

enum { N_WAITING = 4, N_STEPS = 60 };

struct waiting {
	_Atomic bool is_slow; // the owner, which goes on
	_Atomic int n_early, n_having, most_having, n_ended;
};

// A process that has the turn of the cache, works a little in each tenth of a second or not at all,
// and ends its turn after six seconds or never.
static pid_t fork_owner(struct name_cache *cache, struct waiting *waiting, bool works)
{
	const struct timespec step = {.tv_nsec = 100000000};
	const pid_t child = fork();

	if (child != 0)
		return child;
	name_cache_await_turn(cache);
	waiting->is_slow = works;
	for (int i = 0; i < N_STEPS; i++) {
		for (const clock_t start = clock(); works && clock() == start;)
			;
		nanosleep(&step, NULL);
	}
	while (!works)
		pause();
	waiting->is_slow = false;
	name_cache_end_turn(cache);
	_exit(0);
}

static pid_t fork_waiting(struct name_cache *cache, struct waiting *waiting)
{
	const struct timespec moment = {.tv_nsec = 100000000};
	const pid_t child = fork();

	if (child != 0)
		return child;
	name_cache_await_turn(cache);
	const int n = ++waiting->n_having;
	waiting->n_early += waiting->is_slow;
	if (n > waiting->most_having)
		waiting->most_having = n;
	nanosleep(&moment, NULL);
	waiting->n_having--;
	name_cache_end_turn(cache);
	waiting->n_ended++;
	_exit(0);
}

// Of those that wait for one that is only slow, none has the turn before it ends; one that stands
// still loses it, and one after the other gets it.
static void test_slow_and_still(void **state)
{
	struct waiting *waiting = mmap(NULL, 2 * sizeof(*waiting), PROT_READ | PROT_WRITE,
	                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct name_cache *caches[] = {name_cache_create(), name_cache_create()};
	const pid_t slow = fork_owner(caches[0], &waiting[0], true);
	const pid_t still = fork_owner(caches[1], &waiting[1], false);
	pid_t children[2 * N_WAITING];

	(void)state;
	nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
	for (int i = 0; i < 2 * N_WAITING; i++)
		children[i] = fork_waiting(caches[i % 2], &waiting[i % 2]);
	assert_int_equal(waitpid(slow, NULL, 0), slow);
	for (int i = 0; i < 2 * N_WAITING; i++)
		assert_int_equal(waitpid(children[i], NULL, 0), children[i]);
	kill(still, SIGKILL);
	assert_int_equal(waitpid(still, NULL, 0), still);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(waiting[i].n_ended, N_WAITING);
		assert_int_equal(waiting[i].n_early, 0);
		assert_int_equal(waiting[i].most_having, 1);
		name_cache_destroy(caches[i]);
	}
	munmap(waiting, 2 * sizeof(*waiting));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_shared),         cmocka_unit_test(test_full),
	    cmocka_unit_test(test_killed),         cmocka_unit_test(test_turn),
	    cmocka_unit_test(test_slow_and_still),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

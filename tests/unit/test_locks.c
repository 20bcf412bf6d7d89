// SPDX-License-Identifier: MIT
// Whose a lock is, by its words; who can never go on; the kernel's table of file locks; calls in
// words. All without a process.
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "blocked_since.h"
#include "call_text.h"
#include "deadlock.h"
#include "file_locks.h"
#include "lock_claim.h"
#include "lock_look.h"
#include "memory.h"
#include "unit.h"

enum { ADDRESS = 0x7000, TID = 4711, ALL_WORDS = (1 << LOCK_WORDS) - 1 };

static bool is_tid(void *context, int tid, bool is_shared)
{
	(void)context;
	(void)is_shared;
	return tid == TID;
}

struct row {
	const char *name;
	enum lock_hint hint;
	int op;
	uint32_t expected;                              // that the caller saw in the word
	uint32_t before[3];                             // words -3 to -1
	uint32_t words[LOCK_WORDS - LOCK_WORDS_BEFORE]; // from the futex on
	enum lock_what what;
	int owner;
	bool is_certain;
	int first; // word of the lock, from the futex
	uint32_t readers;
};

// clang-format off
static const struct row rows[] = {
	{"normal", LOCK_HINT_MUTEX, FUTEX_WAIT_PRIVATE, 2,
	 {0}, {2, 0, TID, 1, 0}, LOCK_WHAT_MUTEX, TID, true, 0, 0},
	{"recursive", LOCK_HINT_MUTEX, FUTEX_WAIT_PRIVATE, 2,
	 {0}, {2, 3, TID, 1, 1}, LOCK_WHAT_MUTEX, TID, true, 0, 0},
	{"being passed on", LOCK_HINT_MUTEX, FUTEX_WAIT_PRIVATE, 2,
	 {0}, {2, 0, 0, 0, 0}, LOCK_WHAT_MUTEX, 0, false, 0, 0},
	{"free by now", LOCK_HINT_MUTEX, FUTEX_WAIT_PRIVATE, 2,
	 {0}, {0, 0, TID, 1, 0}, LOCK_WHAT_MUTEX, 0, false, 0, 0},
	{"nobody's tid", LOCK_HINT_MUTEX, FUTEX_WAIT_PRIVATE, 2,
	 {0}, {2, 0, 99, 1, 0}, LOCK_WHAT_MUTEX, 0, false, 0, 0},
	{"no such kind", LOCK_HINT_MUTEX, FUTEX_WAIT_PRIVATE, 2,
	 {0}, {2, 0, TID, 1, 0x10000}, LOCK_WHAT_MUTEX, 0, false, 0, 0},
	{"robust", LOCK_HINT_MUTEX, FUTEX_WAIT, 0,
	 {0}, {0x80000000 | TID, 0, TID, 1, 0x90}, LOCK_WHAT_MUTEX, TID, true, 0, 0},
	{"robust, of another", LOCK_HINT_MUTEX, FUTEX_WAIT, 0,
	 {0}, {0x80000000 | 5, 0, TID, 1, 0x90}, LOCK_WHAT_MUTEX, 0, false, 0, 0},
	{"PI", LOCK_HINT_NONE, FUTEX_LOCK_PI_PRIVATE, 0,
	 {0}, {0x80000000 | TID, 0, 0, 0, 0x20}, LOCK_WHAT_MUTEX, TID, true, 0, 0},
	{"PI, its owner died", LOCK_HINT_NONE, FUTEX_LOCK_PI_PRIVATE, 0,
	 {0}, {0xc0000000 | TID, 0, 0, 0, 0x20}, LOCK_WHAT_MUTEX, TID, true, 0, 0},
	{"without a name", LOCK_HINT_NONE, FUTEX_WAIT_PRIVATE, 2,
	 {0}, {2, 0, TID, 1, 0}, LOCK_WHAT_MUTEX, TID, false, 0, 0},
	{"not quite a mutex", LOCK_HINT_NONE, FUTEX_WAIT_PRIVATE, 2,
	 {0}, {1, 0, TID, 1, 0}, LOCK_WHAT_LOCK, 0, false, 0, 0},
	{"nor that", LOCK_HINT_NONE, FUTEX_WAIT_PRIVATE, 2,
	 {0}, {2, 0, TID, 0, 0}, LOCK_WHAT_LOCK, 0, false, 0, 0},
	{"musl", LOCK_HINT_MUTEX, FUTEX_WAIT_PRIVATE, 0,
	 {0, 0, 1}, {0x80000000 | TID, 1, 0, 0, 0xffff0000}, LOCK_WHAT_MUTEX, TID, false, -1, 0},
	{"musl, written", LOCK_HINT_READ, FUTEX_WAIT_PRIVATE, 0xffffffff,
	 {0}, {0xffffffff, 2, 0, 0, 0}, LOCK_WHAT_RWLOCK, 0, false, 0, 0},
	{"musl, read", LOCK_HINT_WRITE, FUTEX_WAIT_PRIVATE, 0x80000002,
	 {0}, {0x80000002, 1, 0, 0, 0}, LOCK_WHAT_RWLOCK, 0, false, 0, 2},
	{"musl, join", LOCK_HINT_JOIN, FUTEX_WAIT_PRIVATE, TID,
	 {0}, {TID}, LOCK_WHAT_JOIN, 0, false, 0, 0},
	{"written, to write", LOCK_HINT_WRITE, FUTEX_WAIT_BITSET_PRIVATE, 3,
	 {8, 1, 3}, {3, 0, 0, TID}, LOCK_WHAT_RWLOCK, TID, true, -3, 0},
	{"written, to read", LOCK_HINT_READ, FUTEX_WAIT_BITSET_PRIVATE, 3,
	 {0, 8, 0}, {3, 1, 0, 0, TID}, LOCK_WHAT_RWLOCK, TID, true, -2, 0},
	{"read, to write", LOCK_HINT_WRITE, FUTEX_WAIT_BITSET_PRIVATE, 2,
	 {0, 2 << 3 | 2, 0}, {2, 1, 0, 0, 0}, LOCK_WHAT_RWLOCK, 0, false, -2, 2},
	{"nobody says that it is written", LOCK_HINT_NONE, FUTEX_WAIT_BITSET_PRIVATE, 3,
	 {8, 1, 3}, {3, 0, 0, TID}, LOCK_WHAT_RWLOCK, TID, false, -3, 0},
	{"nobody says so, to read", LOCK_HINT_NONE, FUTEX_WAIT_BITSET_PRIVATE, 3,
	 {0, 8, 0}, {3, 1, 0, 0, TID}, LOCK_WHAT_RWLOCK, TID, false, -2, 0},
	{"not a rwlock", LOCK_HINT_NONE, FUTEX_WAIT_BITSET_PRIVATE, 3,
	 {8, 1, 3}, {3, 0, 1, TID}, LOCK_WHAT_LOCK, 0, false, 0, 0},
	{"robust, nobody says so", LOCK_HINT_NONE, FUTEX_WAIT, 0,
	 {0}, {0x80000000 | TID, 0, TID, 1, 0x90}, LOCK_WHAT_MUTEX, TID, false, 0, 0},
	{"join, in no descriptor", LOCK_HINT_JOIN, FUTEX_WAIT_BITSET, TID,
	 {0}, {TID}, LOCK_WHAT_JOIN, 0, false, 0, 0},
	{"condition", LOCK_HINT_CONDITION, FUTEX_WAIT_BITSET_PRIVATE, 0,
	 {0}, {2, 0, TID, 1, 0}, LOCK_WHAT_CONDITION, 0, false, 0, 0},
	{"semaphore", LOCK_HINT_SEMAPHORE, FUTEX_WAIT_BITSET_PRIVATE, 0,
	 {0}, {0}, LOCK_WHAT_SEMAPHORE, 0, false, 0, 0},
	{"wakes others", LOCK_HINT_MUTEX, FUTEX_WAKE_PRIVATE, 2,
	 {0}, {2, 0, TID, 1, 0}, LOCK_WHAT_NONE, 0, false, 0, 0},
};
// clang-format on

static struct lock_look look_of(const struct row *row)
{
	struct lock_look look = {.pid = 1, .tid = 2, .has_words = ALL_WORDS};

	look.call = (struct proc_syscall){
	    .nr = SYS_futex,
	    .args = {ADDRESS, (uint64_t)row->op, row->expected},
	};
	memcpy(look.words + 1, row->before, sizeof(row->before));
	memcpy(look.words + LOCK_WORDS_BEFORE, row->words, sizeof(row->words));
	return look;
}

static void test_claims(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct row *row = &rows[i];
		const struct lock_look look = look_of(row);
		struct lock_claim claim;
		lock_claim_read(&look, row->hint, is_tid, NULL, &claim);
		if (claim.what != row->what || claim.owner != row->owner ||
		    claim.is_certain != row->is_certain || claim.readers != row->readers)
			fail_msg("%s: %s, owner %d, %d, %u readers", row->name,
			         lock_what_name(claim.what), claim.owner, claim.is_certain,
			         claim.readers);
		if (row->owner && row->what != LOCK_WHAT_JOIN)
			assert_int_equal(claim.address, ADDRESS + 4 * row->first);
		assert_false(claim.is_timed);
	}
}

// A stream's lock has no tid in it, but the thread's descriptor, which names itself.
static void test_stream(void **state)
{
	struct lock_look look = {.has_words = ALL_WORDS,
	                         .owner_pointer = 0x9000,
	                         .owner_self = 0x9000,
	                         .owner_tid = TID};
	struct lock_claim claim;

	(void)state;
	look.call.args[0] = ADDRESS;
	look.words[LOCK_WORDS_BEFORE] = 2;
	lock_claim_read(&look, LOCK_HINT_PRIVATE, is_tid, NULL, &claim);
	assert_int_equal(claim.what, LOCK_WHAT_STREAM);
	assert_int_equal(claim.owner, TID);
	look.owner_pointer = 0;
	lock_claim_read(&look, LOCK_HINT_PRIVATE, is_tid, NULL, &claim);
	assert_int_equal(claim.owner, 0);
}

// A libc without symbols says nothing of pthread_join; the descriptor around the word says all.
static void test_join(void **state)
{
	struct row row = {.op = FUTEX_WAIT_BITSET};
	static const struct {
		uint32_t thread_tid, expected, word;
		enum lock_what what;
		int owner;
	} cases[] = {
	    {TID, TID, TID, LOCK_WHAT_JOIN, TID},
	    {TID, 2, 2, LOCK_WHAT_JOIN, TID}, // a state, as of 2.43
	    {TID, 2, 0, LOCK_WHAT_JOIN, 0},   // it has ended
	    {5, 2, 2, LOCK_WHAT_JOIN, 0},     // nobody
	    {0, TID, TID, LOCK_WHAT_LOCK, 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		struct lock_claim claim;
		row.expected = cases[i].expected;
		row.words[0] = cases[i].word;
		struct lock_look look = look_of(&row);
		look.thread_tid = cases[i].thread_tid;
		lock_claim_read(&look, LOCK_HINT_NONE, is_tid, NULL, &claim);
		assert_int_equal(claim.what, cases[i].what);
		assert_int_equal(claim.owner, cases[i].owner);
		assert_int_equal(claim.is_certain, cases[i].owner != 0);
	}
}

static void test_hints(void **state)
{
	static const struct {
		const char *name;
		enum lock_hint hint;
	} hints[] = {
	    {"___pthread_mutex_lock", LOCK_HINT_MUTEX},
	    {"__GI___pthread_mutex_timedlock", LOCK_HINT_MUTEX},
	    {"__pthread_rwlock_wrlock_full64", LOCK_HINT_WRITE},
	    {"__pthread_clockjoin_ex", LOCK_HINT_JOIN},
	    {"__new_sem_wait_slow64", LOCK_HINT_SEMAPHORE},
	    {"__lll_lock_wait_private", LOCK_HINT_PRIVATE},
	    {"__lll_lock_wait", LOCK_HINT_NONE},
	    {"main", LOCK_HINT_NONE},
	    {"", LOCK_HINT_NONE},
	};

	(void)state;
	for (size_t i = 0; i < array_size(hints); i++)
		assert_int_equal(lock_hint_of(hints[i].name), hints[i].hint);
}

// One process's threads 1 to n; waits_for[i]: for which thread i + 1 waits, 0 for none.
static void make_nodes(struct deadlock_node *nodes, const int *waits_for, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		nodes[i] = (struct deadlock_node){.pid = 7, .tid = (int)i + 1, .is_whole = true};
		if (waits_for[i] == 0)
			continue;
		nodes[i].holders[0] = (struct deadlock_holder){7, waits_for[i]};
		nodes[i].n_holders = 1;
		nodes[i].is_certain = true;
	}
}

static void test_circle(void **state)
{
	struct deadlock_node nodes[5];

	(void)state;
	make_nodes(nodes, (int[]){2, 3, 2, 1, 0}, 5); // 2 and 3; 1 and 4 wait for them
	deadlock_find(nodes, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(nodes[i].is_dead, i < 4);
	assert_int_equal(nodes[0].cycle, DEADLOCK_NONE);
	assert_int_equal(nodes[1].cycle, nodes[2].cycle);
	assert_int_not_equal(nodes[1].cycle, DEADLOCK_NONE);
	make_nodes(nodes, (int[]){2, 3, 2, 1, 0}, 5);
	nodes[2].is_certain = false;
	deadlock_find(nodes, 5);
	for (size_t i = 0; i < 5; i++)
		assert_false(nodes[i].is_dead);
}

static void test_chain(void **state)
{
	struct deadlock_node nodes[4];

	(void)state;
	make_nodes(nodes, (int[]){2, 3, 0, 99}, 4); // 4 waits for one that is not known
	deadlock_find(nodes, 4);
	for (size_t i = 0; i < 4; i++)
		assert_false(nodes[i].is_dead);
	assert_int_equal(nodes[0].root, 2);
	assert_int_equal(nodes[1].root, 2);
	assert_int_equal(nodes[2].root, DEADLOCK_NONE);
	assert_int_equal(nodes[3].root, DEADLOCK_NONE);
}

// Any thread of a process can let a file's lock go, and either of two holders ends a wait.
static void test_processes(void **state)
{
	struct deadlock_node nodes[] = {
	    {.pid = 1,
	     .tid = 1,
	     .holders = {{2, 0}},
	     .n_holders = 1,
	     .is_certain = true,
	     .is_whole = true},
	    {.pid = 2,
	     .tid = 2,
	     .holders = {{1, 0}},
	     .n_holders = 1,
	     .is_certain = true,
	     .is_whole = true},
	    {.pid = 2,
	     .tid = 3,
	     .holders = {{1, 0}},
	     .n_holders = 1,
	     .is_certain = true,
	     .is_whole = true},
	};

	(void)state;
	deadlock_find(nodes, 3);
	assert_true(nodes[0].is_dead && nodes[1].is_dead && nodes[2].is_dead);
	nodes[2].n_holders = 0; // it runs
	deadlock_find(nodes, 3);
	assert_false(nodes[0].is_dead || nodes[1].is_dead);
	nodes[2].n_holders = 1;
	nodes[0].is_whole = false; // another thread of it may have begun
	deadlock_find(nodes, 3);
	assert_false(nodes[1].is_dead);
	nodes[0].is_whole = true;
	nodes[0].holders[1] = (struct deadlock_holder){9, 9};
	nodes[0].n_holders = 2;
	deadlock_find(nodes, 3);
	assert_false(nodes[0].is_dead || nodes[1].is_dead);
}

static struct deadlock_node chain_node(int tid, int holder)
{
	return (struct deadlock_node){.pid = 1,
	                              .tid = tid,
	                              .holders = {{1, holder}},
	                              .n_holders = holder != 0,
	                              .is_certain = true,
	                              .is_whole = true};
}

// Nobody has more threads. Each look at it is one pass: 30,000 took minutes when each thread that
// was struck off meant to begin anew.
static void test_long_chains(void **state)
{
	enum { N = 30000 };
	_cleanup_free_ struct deadlock_node *nodes = memory_alloc_zeroed(N, sizeof(*nodes));

	(void)state;
	for (int tid = 1; tid <= N; tid++)
		nodes[tid - 1] = chain_node(tid, tid < N ? tid + 1 : 0);
	deadlock_find(nodes, N);
	for (int i = 0; i < N; i++) {
		assert_false(nodes[i].is_dead);
		assert_int_equal(nodes[i].root, i < N - 1 ? N - 1 : DEADLOCK_NONE);
	}
	nodes[N - 1] = chain_node(N, N / 2);
	deadlock_find(nodes, N);
	for (int i = 0; i < N; i++) {
		assert_true(nodes[i].is_dead);
		assert_int_equal(nodes[i].root, DEADLOCK_NONE);
		assert_true((nodes[i].cycle == DEADLOCK_NONE) == (i < N / 2 - 1));
	}
	for (int tid = N; tid > 0; tid--)
		nodes[tid - 1] = chain_node(tid, tid - 1);
	deadlock_find(nodes, N);
	assert_false(nodes[N - 1].is_dead);
	assert_int_equal(nodes[N - 1].root, 0);
}

static void test_file_locks(void **state)
{
	static const char table[] = "1: FLOCK  ADVISORY  WRITE 100 08:01:4711 0 EOF\n"
	                            "1: -> FLOCK  ADVISORY  WRITE 200 08:01:4711 0 EOF\n"
	                            "2: POSIX  ADVISORY  WRITE 300 08:01:4712 0 EOF\n"
	                            "2: -> POSIX  ADVISORY  WRITE 200 08:01:4712 0 EOF\n"
	                            "3: OFDLCK ADVISORY  WRITE -1 08:01:4713 0 EOF\n"
	                            "nonsense\n4: ->\n";
	int pids[2];

	(void)state;
	assert_int_equal(file_locks_find(table, &(struct file_lock_wait){200, 4711, true}, pids, 2),
	                 1);
	assert_int_equal(pids[0], 100);
	assert_int_equal(
	    file_locks_find(table, &(struct file_lock_wait){200, 4712, false}, pids, 2), 1);
	assert_int_equal(pids[0], 300);
	assert_int_equal(file_locks_find(table, &(struct file_lock_wait){200, 4712, true}, pids, 2),
	                 0);
	assert_int_equal(file_locks_find(table, &(struct file_lock_wait){100, 4711, true}, pids, 2),
	                 0);
	assert_int_equal(file_locks_find("", &(struct file_lock_wait){1, 0, true}, pids, 2), 0);
}

static void test_exec_start(void **state)
{
	(void)state;
	assert_int_equal(
	    blocked_since_parse("x (1, #threads: 1)\n---\nse.exec_start   :  12.000345\n"),
	    INT64_C(12000345));
	assert_int_equal(blocked_since_parse("se.exec_start : 13754467.274884"),
	                 INT64_C(13754467274884));
	assert_int_equal(blocked_since_parse("se.exec_start : 7"), 7000000);
	assert_int_equal(blocked_since_parse("se.vruntime : 7"), -1);
	assert_int_equal(blocked_since_parse("se.exec_start : -7"), -1);
	assert_int_equal(blocked_since_parse("se.exec_start : 99999999999999999999"), -1);
	// A thread may call itself so.
	assert_int_equal(
	    blocked_since_parse("se.exec_start:9 (1, #threads: 1)\nse.exec_start : 1.0\n"),
	    1000000);
	assert_int_equal(
	    blocked_since_parse("a\nse.exec_start (1, #threads: 1)\nse.exec_start : 1.0\n"),
	    1000000);
}

static void test_durations(void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} durations[] = {
	    {0, "0.00 s"},
	    {380000000, "0.38 s"},
	    {INT64_C(242000000000), "4 min 2 s"},
	    {INT64_C(11524000000000), "3:12:04"},
	    {INT64_C(443524000000000), "5 d 3:12:04"},
	};
	char text[CALL_TEXT_DURATION_SIZE];

	(void)state;
	for (size_t i = 0; i < array_size(durations); i++) {
		call_text_duration(durations[i].ns, text);
		assert_string_equal(text, durations[i].text);
	}
	call_text_duration(INT64_MAX, text);
}

static void test_calls(void **state)
{
	const uint64_t args[6] = {5, (uint64_t)-1, 3};
	_cleanup_free_ char *read = call_text(SYS_read, args, "pipe:[1]", NULL);
	_cleanup_free_ char *unknown = call_text(SYS_mmap, args, "", NULL);
	_cleanup_free_ char *name = call_text_name(SYS_futex, "");

	(void)state;
	assert_string_equal(read, "read(5 pipe:[1])");
	assert_string_equal(unknown, "mmap(...)");
	assert_string_equal(name, "futex(...)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_claims),     cmocka_unit_test(test_stream),
	    cmocka_unit_test(test_join),       cmocka_unit_test(test_hints),
	    cmocka_unit_test(test_circle),     cmocka_unit_test(test_chain),
	    cmocka_unit_test(test_processes),  cmocka_unit_test(test_file_locks),
	    cmocka_unit_test(test_exec_start), cmocka_unit_test(test_durations),
	    cmocka_unit_test(test_calls),      cmocka_unit_test(test_long_chains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

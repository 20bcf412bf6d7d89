// SPDX-License-Identifier: MIT
// Which kind a wait is, by a table.
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>

#include "memory.h"
#include "report_fixture.h"
#include "sample_kind.h"
#include "sample_work.h"
#include "unit.h"

struct row {
	const char *kind;
	enum thread_state state;
	int syscall;
	const char *descriptor, *meaning;
	const char
	    *functions; // leaf first, a space between two; "f@FILE": of that source; "?": no name
};

static const struct row rows[] = {
    {"running", THREAD_RUNNING, NO_SYSCALL, "", NULL, "pthread_mutex_lock"},
    {"stopped", THREAD_STOPPED, SYS_futex, "", NULL, "pthread_mutex_lock"},
    {"runnable", THREAD_RUNNABLE, SYS_futex, "", NULL, "pthread_mutex_lock"},
    {"runnable", THREAD_RUNNABLE, NO_SYSCALL, "", NULL, "clock_nanosleep f"},
    // A futex, by the functions.
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL, "futex_wait __lll_lock_wait f"},
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL, "___pthread_mutex_lock f main"},
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL, "x __GI___pthread_rwlock_wrlock"},
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL, "__lll_lock_wait_private puts"},
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL, "syscall __cxa_guard_acquire"},
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL,
     "std::sys::sync::mutex::futex::Mutex::lock_contended"},
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL, "a absl::Mutex::LockSlowLoop"},
    // One that comes back from a condition waits for its mutex.
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL,
     "__lll_lock_wait __pthread_mutex_cond_lock pthread_cond_wait"},
    {"condition", THREAD_SLEEPING, SYS_futex, "", NULL, "futex_wait pthread_cond_wait f"},
    {"condition", THREAD_SLEEPING, SYS_futex, "", NULL, "__new_sem_wait_slow64 f"},
    {"condition", THREAD_SLEEPING, SYS_futex, "", NULL, "__pthread_clockjoin_ex f"},
    {"condition", THREAD_SLEEPING, SYS_futex, "", NULL, "f g"},
    {"condition", THREAD_SLEEPING, SYS_futex, "", NULL, ""},
    // Runtimes build locks on conditions.
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL, "pthread_cond_timedwait take_gil f"},
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL,
     "do_futex_wait sem_wait PyThread_acquire_lock_timed"},
    {"condition", THREAD_SLEEPING, SYS_futex, "", NULL,
     "sem_clockwait PyThread_acquire_lock_timed acquire_timed lock_PyThread_acquire_lock "
     "Condition.wait Event.wait"},
    {"condition", THREAD_SLEEPING, SYS_futex, "", NULL,
     "sem_clockwait PyThread_acquire_lock_timed _queue_SimpleQueue_get_impl _worker"},
    {"condition", THREAD_SLEEPING, SYS_futex, "", NULL,
     "sem_clockwait PyThread_acquire_lock_timed wait@/usr/lib/python3.10/threading.py get"},
    {"condition", THREAD_SLEEPING, SYS_futex, "", NULL,
     "sem_clockwait PyThread_acquire_lock_timed _shutdown@/usr/lib/python3.11/threading.py"},
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL,
     "sem_clockwait PyThread_acquire_lock_timed _shutdown@/srv/server.py wait@/srv/server.py"},
    {"condition", THREAD_SLEEPING, SYS_futex, "", NULL,
     "sem_clockwait PyThread_acquire_lock_timed ? _worker@/usr/lib/concurrent/futures/thread.py"},
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL,
     "sem_clockwait PyThread_acquire_lock_timed f ? _worker@/usr/lib/concurrent/futures/thread.py"},
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL,
     "pthread_cond_timedwait take_gil PyEval_RestoreThread acquire_timed Condition.wait"},
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL,
     "pthread_cond_wait park ObjectMonitor::enter(int)"},
    {"condition", THREAD_SLEEPING, SYS_futex, "", NULL, "pthread_cond_wait ObjectMonitor::wait"},
    {"lock", THREAD_SLEEPING, SYS_epoll_wait, "", NULL,
     "epoll_wait WaitEventSetWait WaitLatch ProcSleep LockAcquireExtended"},
    {"event", THREAD_SLEEPING, SYS_epoll_wait, "", NULL, "epoll_wait WaitEventSetWait WaitLatch"},
    {"lock", THREAD_SLEEPING, SYS_clock_nanosleep, "", NULL,
     "clock_nanosleep nanosleep usleep sqlite3InvokeBusyHandler sqlite3BtreeBeginTrans"},
    {"condition", THREAD_SLEEPING, SYS_futex, "", NULL, "pthread_cond_wait park Unsafe_Park"},
    {"condition", THREAD_SLEEPING, SYS_futex, "", NULL,
     "pthread_cond_wait Unsafe_Park LinkedBlockingQueue.take"},
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL,
     "pthread_cond_wait Unsafe_Park java.util.concurrent.locks.ReentrantLock$Sync.lock"},
    {"timer", THREAD_SLEEPING, SYS_futex, "", NULL, "pthread_cond_timedwait JVM_Sleep"},
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL, "runtime.futex runtime.lock2"},
    {"condition", THREAD_SLEEPING, SYS_futex, "", NULL, "runtime.futex runtime.stopm"},
    // Only the innermost ones count.
    {"condition", THREAD_SLEEPING, SYS_futex, "", NULL, "1 2 3 4 5 6 7 8 9 10 11 12 take_gil"},
    {"lock", THREAD_SLEEPING, SYS_futex, "", NULL, "1 2 3 4 5 6 7 8 9 10 11 take_gil"},
    {"lock", THREAD_SLEEPING, SYS_flock, "/tmp/x", NULL, "flock"},
    {"lock", THREAD_SLEEPING, SYS_fcntl, "/tmp/x", NULL, "fcntl"},
    // Reading and writing, by the descriptor.
    {"file", THREAD_SLEEPING, SYS_read, "/srv/x", NULL, "read"},
    {"pipe", THREAD_SLEEPING, SYS_read, "fifo /run/x", NULL, "read"},
    {"pipe", THREAD_SLEEPING, SYS_read, "/dev/pts/1", NULL, "read"},
    {"pipe", THREAD_SLEEPING, SYS_read, "pipe:[4711]", NULL, "read"},
    {"pipe", THREAD_SLEEPING, SYS_write, "eventfd", NULL, "write"},
    {"pipe", THREAD_SLEEPING, SYS_read, "", NULL, "read"},
    {"timer", THREAD_SLEEPING, SYS_read, "timerfd", NULL, "read"},
    {"event", THREAD_SLEEPING, SYS_read, "signalfd", NULL, "read"},
    {"event", THREAD_SLEEPING, SYS_read, "inotify", NULL, "read"},
    {"socket", THREAD_SLEEPING, SYS_read, "socket:[7]", NULL, "read"},
    {"socket", THREAD_SLEEPING, SYS_read, "socket:[7]", "tcp 1.2.3.4:5 -> 6.7.8.9:10", "read"},
    {"socket", THREAD_SLEEPING, SYS_write, "socket:[7]", "unix /run/x", "write"},
    {"socket", THREAD_SLEEPING, SYS_recvfrom, "", NULL, "recv"},
    {"socket", THREAD_SLEEPING, SYS_accept4, "", NULL, "accept4"},
    // A lock is not waited for only because one is held.
    {"socket", THREAD_SLEEPING, SYS_recvmsg, "", NULL, "recvmsg pthread_mutex_lock"},
    // Disk sleep.
    {"file", THREAD_DISK, SYS_fdatasync, "/srv/x", NULL, "fdatasync"},
    {"file", THREAD_DISK, NO_SYSCALL, "", NULL, "memcpy"},
    {"pipe", THREAD_DISK, SYS_vfork, "", NULL, "vfork"},
    {"lock", THREAD_DISK, SYS_munmap, "", NULL, "munmap"},
    {"lock", THREAD_DISK, SYS_mmap, "", NULL, "mmap"},
    {"lock", THREAD_DISK, SYS_brk, "", NULL, "brk"},
    {"file", THREAD_DISK, SYS_msync, "", NULL, "msync"},
    {"file", THREAD_SLEEPING, SYS_fsync, "/srv/x", NULL, "fsync"},
    {"event", THREAD_SLEEPING, SYS_epoll_wait, "epoll", NULL, "epoll_wait"},
    {"event", THREAD_SLEEPING, SYS_poll, "pipe:[4711] +2", NULL, "poll"},
    {"timer", THREAD_SLEEPING, SYS_select, "no descriptor", NULL, "select pysleep"},
    {"lock", THREAD_SLEEPING, SYS_select, "no descriptor", NULL, "select s_lock LWLockAcquire"},
    {"event", THREAD_SLEEPING, SYS_select, "", NULL, "select"},
    {"event", THREAD_SLEEPING, SYS_rt_sigtimedwait, "", NULL, "sigwaitinfo"},
    {"timer", THREAD_SLEEPING, SYS_clock_nanosleep, "", NULL, "clock_nanosleep nanosleep"},
    {"timer", THREAD_SLEEPING, SYS_pause, "", NULL, "pause"},
    {"pipe", THREAD_SLEEPING, SYS_wait4, "", NULL, "wait4"},
    {"pipe", THREAD_SLEEPING, SYS_msgrcv, "", NULL, "msgrcv"},
    {"pipe", THREAD_SLEEPING, SYS_semtimedop, "", NULL, "semop"},
    // After a debugger has been there, and where /proc does not show the call.
    {"lock", THREAD_SLEEPING, SYS_restart_syscall, "", NULL, "x pthread_mutex_timedlock"},
    {"timer", THREAD_SLEEPING, SYS_restart_syscall, "", NULL, "__GI___clock_nanosleep f"},
    {"event", THREAD_SLEEPING, SYS_restart_syscall, "", NULL, "__GI___poll f"},
    {"lock", THREAD_SLEEPING, NO_SYSCALL, "", NULL, "x pthread_mutex_lock"},
    {"socket", THREAD_SLEEPING, NO_SYSCALL, "", NULL, "__libc_accept f"},
    {"event", THREAD_SLEEPING, NO_SYSCALL, "", NULL, "f"},
    {"event", THREAD_SLEEPING, 9999, "", NULL, "f"},
    {"event", THREAD_SLEEPING, NO_SYSCALL, "", NULL, ""},
};

// A location of that function alone.
static uint32_t frame_of(struct report_fixture *f, char *name)
{
	char *at = strchr(name, '@');

	if (strcmp(name, "?") == 0)
		return report_fixture_location(f, 2, 0x20, NULL, 0);
	if (!at)
		return report_fixture_frame(f, name);
	*at = '\0';
	const struct fixture_line line = {report_fixture_function(f, name, name, at + 1), 1};
	return report_fixture_location(f, 2, 0x10, &line, 1);
}

static const char *kind_of(const struct row *row)
{
	struct report_fixture f;
	struct sample_kinds kinds;
	uint32_t ids[16];
	size_t n = 0;
	char *save = NULL;
	_cleanup_free_ char *functions = memory_strdup(row->functions);

	report_fixture_init(&f);
	const uint32_t thread = report_fixture_thread(&f, 1, "t");
	for (char *name = strtok_r(functions, " ", &save); name; name = strtok_r(NULL, " ", &save))
		ids[n++] = frame_of(&f, name);
	const uint32_t wait = profile_intern_wait(&f.profile, row->syscall, row->descriptor, "");
	if (row->meaning)
		profile_explain_descriptor(&f.profile, wait, row->meaning);
	report_fixture_wait(&f, thread, row->state, ids, n, STACK_COMPLETE, wait, 1);
	sample_kinds_init(&kinds, &f.profile, &f.symbols);
	const char *name = wait_kind_name(sample_kind(&kinds, &f.profile.samples[0]));
	sample_kinds_deinit(&kinds);
	report_fixture_deinit(&f);
	return name;
}

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const char *kind = kind_of(&rows[i]);
		if (strcmp(kind, rows[i].kind) != 0)
			fail_msg("row %zu, %s: %s, not %s", i, rows[i].functions, kind,
			         rows[i].kind);
	}
}

static void test_inlined(void **state)
{
	struct report_fixture f;
	struct sample_kinds kinds;

	(void)state;
	report_fixture_init(&f);
	const uint32_t thread = report_fixture_thread(&f, 1, "t");
	const struct fixture_line lines[] = {
	    {report_fixture_function(&f, "futex_wait", "futex_wait", ""), 1},
	    {report_fixture_function(&f, "__lll_lock_wait", "__lll_lock_wait", ""), 2},
	};
	const uint32_t id = report_fixture_location(&f, 2, 0x10, lines, 2);
	const uint32_t wait = profile_intern_wait(&f.profile, SYS_futex, "", "");
	report_fixture_wait(&f, thread, THREAD_SLEEPING, &id, 1, STACK_COMPLETE, wait, 1);
	sample_kinds_init(&kinds, &f.profile, &f.symbols);
	assert_int_equal(sample_kind(&kinds, &f.profile.samples[0]), WAIT_KIND_LOCK);
	sample_kinds_deinit(&kinds);
	report_fixture_deinit(&f);
}

static void test_names(void **state)
{
	(void)state;
	for (enum wait_kind kind = 0; kind < N_WAIT_KINDS; kind++)
		assert_non_null(wait_kind_name(kind));
	assert_string_equal(wait_kind_words(WAIT_KIND_RUNNABLE), "waiting for a CPU");
	assert_string_equal(wait_kind_words(WAIT_KIND_LOCK), "lock");
	for (enum wait_kind kind = 0; kind < N_WAIT_KINDS; kind++)
		assert_int_equal(wait_kind_is_blocked(kind),
		                 kind != WAIT_KIND_RUNNING && kind != WAIT_KIND_RUNNABLE);
}

static void test_no_work(void **state)
{
	static const struct {
		enum wait_kind kind;
		int syscall;
		char *text, *reason;
		bool expected;
	} cases[] = {
	    {WAIT_KIND_RUNNING, NO_SYSCALL, "", "", false},
	    {WAIT_KIND_RUNNABLE, NO_SYSCALL, "", "", false},
	    {WAIT_KIND_CONDITION, SYS_futex, "", "", true},
	    {WAIT_KIND_EVENT, SYS_epoll_wait, "epoll", "", true},
	    {WAIT_KIND_TIMER, SYS_pause, "", "", true},
	    {WAIT_KIND_LOCK, SYS_futex, "mutex 0x1", "", false},
	    {WAIT_KIND_FILE, SYS_read, "/etc/passwd", "", false},
	    {WAIT_KIND_PIPE, SYS_wait4, "", "", false},
	    {WAIT_KIND_STOPPED, NO_SYSCALL, "", "", false},
	    {WAIT_KIND_SOCKET, SYS_accept4, "socket:[1]", "", true},
	    {WAIT_KIND_SOCKET, SYS_recvfrom, "socket:[1]", "", false},
	    {WAIT_KIND_SOCKET, SYS_recvfrom, "tcp 127.0.0.1:40000 -> 127.0.0.1:5432", "", false},
	    {WAIT_KIND_SOCKET, SYS_recvfrom, "tcp 127.0.0.1:5432 -> 127.0.0.1:40000", "", true},
	    {WAIT_KIND_SOCKET, SYS_recvfrom, "tcp [::1]:80 -> [::1]:40000", "", true},
	    {WAIT_KIND_SOCKET, SYS_recvfrom, "udp 0.0.0.0:53", "", true},
	    {WAIT_KIND_SOCKET, SYS_recvfrom, "unix /run/x.sock", "", true},
	    {WAIT_KIND_SOCKET, SYS_recvfrom, "unix:[4711]", "", false},
	    {WAIT_KIND_SOCKET, SYS_recvfrom, "tcp  -> ", "", false},
	    {WAIT_KIND_SOCKET, NO_SYSCALL, "", "IO wait", true},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		const struct wait wait = {
		    .syscall = cases[i].syscall,
		    .descriptor = cases[i].text,
		    .frames = "",
		    .reason = cases[i].reason,
		};
		if (wait_kind_has_no_work(cases[i].kind, &wait) != cases[i].expected)
			fail_msg("%zu: %s", i, cases[i].text);
	}
	assert_true(wait_kind_has_no_work(WAIT_KIND_TIMER, NULL));
	assert_false(wait_kind_has_no_work(WAIT_KIND_SOCKET, NULL));
}

// A task of Go, by its functions, leaf first: each is of the program's file and has that source.
static bool task_has_no_work(const char *functions, const char *reason, const char *descriptor)
{
	struct report_fixture f;
	struct sample_kinds kinds;
	uint32_t ids[16];
	size_t n = 0;
	char *save = NULL;
	_cleanup_free_ char *text = memory_strdup(functions);

	report_fixture_init(&f);
	const uint32_t thread = report_fixture_thread(&f, 1, "t");
	for (char *name = strtok_r(text, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
		const struct fixture_line line = {
		    report_fixture_function(&f, name, name, "/src/x.go"), 1};
		ids[n] = report_fixture_location(&f, 1, 0x10 * n, &line, 1);
		n++;
	}
	const uint32_t wait = profile_intern_reason(&f.profile, reason, descriptor);
	report_fixture_wait(&f, thread, THREAD_SLEEPING, ids, n, STACK_COMPLETE, wait, 1);
	sample_kinds_init(&kinds, &f.profile, &f.symbols);
	struct sample_work *work = sample_work_create(&f.profile, &f.modules, &f.symbols);
	const struct sample *sample = &f.profile.samples[0];
	const bool has_no_work = sample_has_no_work(work, sample, sample_kind(&kinds, sample));
	sample_work_destroy(work);
	sample_kinds_deinit(&kinds);
	report_fixture_deinit(&f);
	return has_no_work;
}

// A connection that is kept open is idle. Who has asked waits for the goroutine that reads it.
static void test_work_of_tasks(void **state)
{
	static const char client[] = "tcp 127.0.0.1:40000 -> 127.0.0.1:5432";

	(void)state;
	assert_true(task_has_no_work("runtime.gopark net.(*conn).Read "
	                             "net/http.(*persistConn).readLoop runtime.goexit",
	                             "IO wait", client));
	assert_false(task_has_no_work("runtime.gopark net.(*conn).Read "
	                              "github.com/lib/pq.(*conn).recv main.load",
	                              "IO wait", client));
	assert_false(task_has_no_work("runtime.gopark runtime.selectgo "
	                              "net/http.(*persistConn).roundTrip main.fetch",
	                              "select", ""));
	assert_false(task_has_no_work("runtime.gopark runtime.selectgo "
	                              "net.(*Resolver).lookupIPAddr main.fetch",
	                              "select", ""));
	assert_true(task_has_no_work("runtime.gopark runtime.selectgo main.work", "select", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_table),         cmocka_unit_test(test_inlined),
	    cmocka_unit_test(test_names),         cmocka_unit_test(test_no_work),
	    cmocka_unit_test(test_work_of_tasks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

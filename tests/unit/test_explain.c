// SPDX-License-Identifier: MIT
// Which rule tells of what threads do, in profiles made by hand. test_explain.py has real programs.
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "blame.h"
#include "explain.h"
#include "memory.h"
#include "report_fixture.h"
#include "unit.h"

enum { PROGRAM = 1, ALL_TICKS = 200 }; // of the fixture's two seconds

// What one thread does, below its own function "work".
struct activity {
	enum thread_state state;
	int syscall;
	const char *descriptor;
	const char *reason; // a goroutine's
	const char *frame;  // of a library
	uint64_t ticks;
};

static const struct activity runs_child = {THREAD_SLEEPING,     SYS_poll, "pipe:[7]", "",
                                           "Popen.communicate", ALL_TICKS};
static const struct activity polls_child = {THREAD_SLEEPING, SYS_nanosleep, "", "",
                                            "Popen.wait",    ALL_TICKS};
static const struct activity requests = {
    THREAD_SLEEPING, NO_SYSCALL, "", "select", "net/http.(*persistConn).roundTrip", ALL_TICKS};
static const struct activity lookup = {
    THREAD_SLEEPING, SYS_poll, "udp 10.0.0.1:1 -> 10.0.0.2:53", "", "getaddrinfo", ALL_TICKS};
static const struct activity asks_resolver = {
    THREAD_SLEEPING, SYS_poll, "udp 10.0.0.1:1 -> 10.0.0.2:53", "", "res_nquery", ALL_TICKS};
static const struct activity swapped = {THREAD_DISK, NO_SYSCALL, "", "", "memcpy", ALL_TICKS};
static const struct activity gil = {THREAD_SLEEPING, SYS_futex, "GIL, held by \"a\" 1", "",
                                    "take_gil",      ALL_TICKS};
static const struct activity sends = {THREAD_SLEEPING, NO_SYSCALL,          "chan 0xc0",
                                      "chan send",     "runtime.chansend1", ALL_TICKS};
static const struct activity borrows = {THREAD_SLEEPING,     SYS_futex, "", "",
                                        "Semaphore.acquire", ALL_TICKS};
static const struct activity resolves = {
    THREAD_SLEEPING, NO_SYSCALL, "", "chan receive", "net.(*Resolver).LookupHost", ALL_TICKS};
static const struct activity sleeps = {THREAD_SLEEPING, SYS_nanosleep, "", "",
                                       "nanosleep",     ALL_TICKS};
static const struct activity waits_for_signal = {THREAD_SLEEPING, SYS_pause, "", "",
                                                 "pause",         ALL_TICKS};
static const struct activity sleeps_often = {
    THREAD_SLEEPING, SYS_nanosleep, "", "", "nanosleep", 150};
static const struct activity computes = {THREAD_RUNNING, NO_SYSCALL, "", "", "memcpy", 50};
static const struct activity asks = {
    THREAD_SLEEPING, SYS_recvfrom, "tcp 10.0.0.1:4711 -> 10.0.0.2:5432", "", "recv", ALL_TICKS};
static const struct activity asks_with_limit = {
    THREAD_SLEEPING, SYS_poll, "tcp 10.0.0.1:4711 -> 10.0.0.2:5432", "", "poll", ALL_TICKS};
static const struct activity serves_with_limit = {
    THREAD_SLEEPING, SYS_poll, "tcp 10.0.0.1:80 -> 10.0.0.2:44711", "", "poll", ALL_TICKS};
static const struct activity looks_at_some = {
    THREAD_SLEEPING, SYS_poll, "tcp 10.0.0.1:4711 -> 10.0.0.2:5432 +1", "", "poll", ALL_TICKS};
static const struct activity asks_itself = {
    THREAD_SLEEPING, SYS_recvfrom, "unix:[1], other end: \"prog\" 100", "", "recv", ALL_TICKS};
static const struct activity collects = {THREAD_SLEEPING, NO_SYSCALL,        "sema 0x57",
                                         "semacquire",    "runtime.gcStart", 150};
static const struct activity marks = {THREAD_RUNNING,           NO_SYSCALL, "", "",
                                      "runtime.gcBgMarkWorker", 100};
static const struct activity marks_idly = {
    THREAD_RUNNING, NO_SYSCALL, "", "", "runtime.gcDrainMarkWorkerIdle", 100};
static const struct activity copies_young = {
    THREAD_RUNNING, NO_SYSCALL, "", "", "VM_GenCollectForAllocation::doit()", 100};
static const struct activity marks_little = {THREAD_RUNNING,           NO_SYSCALL, "", "",
                                             "runtime.gcBgMarkWorker", 10};
static const struct activity marks_hardly = {THREAD_RUNNING,           NO_SYSCALL, "", "",
                                             "runtime.gcBgMarkWorker", 3};
static const struct activity allocates = {
    THREAD_SLEEPING, SYS_futex, "mutex 0x1, held by \"a\" 1", "", "MemAllocator::allocate", 60};
static const struct activity syncs = {THREAD_RUNNING, NO_SYSCALL, "", "", "syscall.Fsync", 150};
static const struct activity syncs_little = {THREAD_RUNNING,  NO_SYSCALL, "", "",
                                             "syscall.Fsync", 10};
static const struct activity computes_some = {THREAD_RUNNING, NO_SYSCALL, "", "", "memcpy", 10};
static const struct activity awaits_child = {
    THREAD_SLEEPING, SYS_futex, "", "", "java.lang.ProcessImpl.waitFor", ALL_TICKS};
static const struct activity computes_little = {THREAD_RUNNING, NO_SYSCALL, "", "", "memcpy", 3};
static const struct activity locks = {
    THREAD_SLEEPING, SYS_futex, "mutex 0x1, held by \"a\" 1", "", "pthread_mutex_lock", 60};
static const struct activity awaits = {THREAD_SLEEPING,  SYS_futex, "", "",
                                       "FutureTask.get", ALL_TICKS};
static const struct activity puts_in = {THREAD_SLEEPING, SYS_futex, "", "", "Queue.put", ALL_TICKS};
static const struct activity ready = {THREAD_RUNNABLE, NO_SYSCALL, "", "", "memcpy", 100};

static void add(struct report_fixture *f, uint32_t thread, const struct activity *activity)
{
	const uint32_t function = 0; // "work"
	const uint32_t ids[] = {
	    report_fixture_frame(f, activity->frame),
	    report_fixture_location(f, PROGRAM, 0x1000 + f->profile.n_locations,
	                            &(struct fixture_line){function, 7}, 1),
	};
	const uint32_t wait =
	    activity->reason[0]
	        ? profile_intern_reason(&f->profile, activity->reason, activity->descriptor)
	        : profile_intern_wait(&f->profile, activity->syscall, activity->descriptor, "");

	if (activity->syscall == SYS_recvfrom || strncmp(activity->descriptor, "tcp ", 4) == 0)
		profile_explain_descriptor(&f->profile, wait, activity->descriptor);
	report_fixture_wait(f, thread, activity->state, ids, array_size(ids), STACK_COMPLETE,
	                    activity->state == THREAD_RUNNING ? (uint32_t)WAIT_NONE : wait,
	                    activity->ticks);
}

enum { MAX_THREADS = 3, MAX_ACTIVITIES = 2 };

static const struct {
	const char *name;
	const struct activity *threads[MAX_THREADS][MAX_ACTIVITIES];
	const char *rules; // those that are found, in their order; '!': a fault
} cases[] = {
    {"a name look-up", {{&lookup}}, "!name-lookup"},
    {"a question to a name server", {{&asks_resolver}}, "!name-lookup"},
    {"a child's output", {{&runs_child}}, "child"},
    {"a child, on a condition", {{&awaits_child}}, "child"},
    {"a child that is looked for again and again", {{&polls_child}}, "child"},
    {"a server's answer, in Go", {{&requests}}, "peer"},
    {"memory on the disk", {{&swapped}}, "!swap"},
    {"Python's lock", {{&gil}, {&computes}}, "!gil"},
    {"a full channel", {{&sends}, {&sends}}, "!channel"},
    {"one sender hands out work", {{&sends}}, ""},
    {"a full queue", {{&puts_in}, {&puts_in}}, "!channel"},
    {"tasks that wait for other tasks", {{&awaits}, {&awaits}}, "result"},
    {"one thread waits for tasks", {{&awaits}, {&computes}}, "hot"},
    {"waits for others are told before sleeping", {{&awaits}, {&awaits}, {&sleeps}}, "result"},
    {"answers are waited for as well", {{&awaits}, {&awaits}, {&asks}}, "result peer"},
    {"a pool", {{&borrows}, {&borrows}}, "!pool"},
    {"one thread hands out work to a pool", {{&borrows}}, ""},
    {"a name look-up in Go", {{&resolves}}, "!name-lookup"},
    {"sleeps only", {{&sleeps}}, "sleep"},
    {"waits for a signal", {{&waits_for_signal}}, ""},
    {"sleeps, and another thread has more to tell",
     {{&sleeps}, {&computes, &sleeps_often}},
     "sleep hot"},
    {"sleeps, and computes for some moments", {{&sleeps_often, &computes_some}}, "sleep"},
    {"waits for an answer only", {{&asks}}, "peer"},
    {"waits for an answer only, with a time limit", {{&asks_with_limit}}, "peer"},
    {"waits for a request, with a time limit", {{&serves_with_limit}}, ""},
    {"waits for one of several", {{&looks_at_some}}, ""},
    {"waits for itself, which sleeps", {{&asks_itself}, {&sleeps}}, "sleep"},
    {"a collection is a part of allocating", {{&collects, &computes}}, "hot"},
    {"garbage is collected", {{&marks}, {&computes}}, "!gc hot"},
    {"garbage is collected on CPUs that are idle", {{&marks_idly}, {&computes}}, "gc hot"},
    {"new garbage is a part of allocating", {{&copies_young}, {&computes}}, "gc hot"},
    {"memory is nearly full", {{&copies_young, &marks}, {&computes}}, "!gc"},
    {"garbage of a program that is nearly idle", {{&marks_hardly}, {&computes_little}}, ""},
    {"the same, and the CPUs are busy", {{&marks_hardly, &ready}, {&ready}, {&ready}}, ""},
    {"a little garbage is a part of computing", {{&marks_little}, {&computes}}, "hot"},
    {"the lock of a heap is a part of allocating", {{&allocates, &computes}}, "hot"},
    {"a disk that is fast is one, too", {{&syncs}}, "file"},
    {"little to do, most of it on a disk", {{&syncs_little, &computes_little}}, "file"},
    {"hardly anything to do", {{&computes_little}}, ""},
    {"a fault comes before what takes longer", {{&locks}, {&computes, &syncs}}, "!lock file"},
    {"nothing", {{NULL}}, ""},
};

static char *found(const struct report_fixture *f)
{
	struct explanation explanation;
	char *text = memory_strdup("");

	explain_make(&f->report, &explanation);
	for (size_t i = 0; i < explanation.n_findings; i++) {
		const struct explain_rule *rule = &explain_rules[explanation.findings[i].rule];
		char *before = text;
		text = memory_printf("%s%s%s%s", before, *before ? " " : "",
		                     rule->is_fault ? "!" : "", rule->name);
		free(before);
	}
	explain_free(&explanation);
	return text;
}

static void test_rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		struct report_fixture f;
		report_fixture_init(&f);
		report_fixture_function(&f, "work", "work", "/src/prog.c");
		for (int j = 0; j < MAX_THREADS; j++) {
			const uint32_t thread = report_fixture_thread(&f, 100 + j, "main");
			for (int k = 0; k < MAX_ACTIVITIES && cases[i].threads[j][k]; k++)
				add(&f, thread, cases[i].threads[j][k]);
		}
		char *rules = found(&f);
		if (strcmp(rules, cases[i].rules) != 0)
			fail_msg("%s: found \"%s\"", cases[i].name, rules);
		free(rules);
		report_fixture_deinit(&f);
	}
}

// What is waited for is told, but not how a library has its thread wait.
static void test_why(void **state)
{
	static const struct {
		const struct activity *activity;
		const char *why;
	} whys[] = {{&asks, "in recvfrom of tcp 10.0.0.1:4711 -> 10.0.0.2:5432"},
	            {&requests, ""},
	            {&resolves, ""},
	            {&locks, "held by \"a\" 1"}};

	(void)state;
	for (size_t i = 0; i < array_size(whys); i++) {
		struct report_fixture f;
		struct explanation explanation;
		report_fixture_init(&f);
		report_fixture_function(&f, "work", "work", "/src/prog.c");
		add(&f, report_fixture_thread(&f, 100, "main"), whys[i].activity);
		explain_make(&f.report, &explanation);
		assert_int_equal(explanation.n_findings, 1);
		const struct row *row = &explanation.rows[explanation.findings[0].row];
		assert_string_equal(explanation.strings.items[row->why], whys[i].why);
		explain_free(&explanation);
		report_fixture_deinit(&f);
	}
}

// That other processes use the CPUs is no finding, and no part of the busy time; too few CPUs for
// its own threads are a fault.
static void test_busy_machine(void **state)
{
	(void)state;
	for (int by_others = 0; by_others < 2; by_others++) {
		struct report_fixture f;
		report_fixture_init(&f);
		report_fixture_function(&f, "work", "work", "/src/prog.c");
		const uint32_t thread = report_fixture_thread(&f, 100, "main");
		add(&f, thread, &ready);
		add(&f, thread, &computes);
		f.report.cpu_wait = "waited";
		f.report.cpu_by_others = by_others;
		char *rules = found(&f);
		assert_string_equal(rules, by_others ? "hot" : "!cpu hot");
		free(rules);
		report_fixture_deinit(&f);
	}
}

// While the holder of the GIL waits for a CPU, other threads wait longer for the GIL. That is told
// as a fault only if it would be one on an idle machine.
static void test_gil_on_busy_machine(void **state)
{
	(void)state;
	for (uint64_t ticks = 30; ticks <= 50; ticks += 20) {
		struct report_fixture f;
		report_fixture_init(&f);
		report_fixture_function(&f, "work", "work", "/src/prog.c");
		const uint32_t waits = report_fixture_thread(&f, 100, "main");
		const uint32_t holds = report_fixture_thread(&f, 101, "main");
		struct activity some = gil;
		some.ticks = ticks;
		add(&f, waits, &some);
		add(&f, holds, &ready);
		add(&f, holds, &computes);
		f.report.cpu_wait = "waited";
		f.report.cpu_by_others = true;
		char *rules = found(&f);
		assert_string_equal(rules, ticks == 30 ? "hot" : "!gil hot");
		free(rules);
		report_fixture_deinit(&f);
	}
}

// Code that is compiled at run time may have lines only here and there: one of them is told.
static void test_line(void **state)
{
	struct report_fixture f;
	struct explanation explanation;

	(void)state;
	report_fixture_init(&f);
	report_fixture_function(&f, "work", "work", "/src/prog.c");
	const uint32_t thread = report_fixture_thread(&f, 100, "main");
	for (uint32_t line = 0; line <= 14; line += 7) {
		const uint32_t id = report_fixture_location(&f, PROGRAM, 0x1000 + line,
		                                            &(struct fixture_line){0, line}, 1);
		report_fixture_wait(&f, thread, THREAD_RUNNING, &id, 1, STACK_COMPLETE, WAIT_NONE,
		                    line == 0 ? 100 : 50 - line);
	}
	explain_make(&f.report, &explanation);
	assert_int_equal(explanation.n_findings, 1);
	assert_int_equal(explain_places(&explanation, explanation.findings[0].row)[0].line, 7);
	explain_free(&explanation);
	report_fixture_deinit(&f);
}

// Two threads wait for each other: of that, a moment is no deadlock, but passes.
static void test_circle(void **state)
{
	(void)state;
	for (uint64_t ticks = 10; ticks <= 30; ticks += 20) {
		struct report_fixture f;
		report_fixture_init(&f);
		report_fixture_function(&f, "work", "work", "/src/prog.c");
		const uint32_t module =
		    modules_add(&f.modules, MODULE_RUNTIME, "[blame]", 0, 0, -1)->index;
		const uint32_t thread = report_fixture_thread(&f, 100, "main");
		const uint32_t circle = report_fixture_location(&f, module, 1, NULL, 0);
		assert_true(blame_is_circle(&f.modules, &f.profile.locations[circle]));
		add(&f, thread, &locks);
		struct sample *sample = &f.profile.samples[0];
		const struct stack alone = f.profile.stacks[sample->stack];
		const uint32_t ids[] = {circle, f.profile.location_ids[alone.first],
		                        f.profile.location_ids[alone.first + 1]};
		report_fixture_wait(&f, thread, THREAD_SLEEPING, ids, array_size(ids),
		                    STACK_COMPLETE, sample->wait, ticks);
		f.profile.stacks[f.profile.samples[1].stack].n_blamed = 1;
		char *rules = found(&f);
		assert_string_equal(rules, ticks < 20 ? "!lock" : "!deadlock !lock");
		free(rules);
		report_fixture_deinit(&f);
	}
}

// Threads of a server take turns at waiting for clients, but not at asking somebody.
static void test_turn(void **state)
{
	static const char *const leaves[] = {"__libc_accept", "epoll_wait", "__libc_recv"};

	(void)state;
	for (size_t i = 0; i < array_size(leaves); i++) {
		struct report_fixture f;
		report_fixture_init(&f);
		report_fixture_function(&f, "work", "work", "/src/prog.c");
		add(&f, report_fixture_thread(&f, 100, "main"), &locks);
		const struct sample *sample = &f.profile.samples[0];
		const struct stack alone = f.profile.stacks[sample->stack];
		const uint32_t ids[] = {report_fixture_frame(&f, leaves[i]),
		                        f.profile.location_ids[alone.first],
		                        f.profile.location_ids[alone.first + 1]};
		report_fixture_wait(&f, report_fixture_thread(&f, 101, "main"), THREAD_SLEEPING,
		                    ids, array_size(ids), STACK_COMPLETE, sample->wait, 100);
		f.profile.stacks[f.profile.samples[1].stack].n_blamed = 1;
		struct explanation explanation;
		explain_make(&f.report, &explanation);
		assert_int_equal(explanation.n_findings, 1);
		const bool is_turn = i < 2;
		assert_int_equal(explanation.findings[0].ns > 1e9, !is_turn);
		explain_free(&explanation);
		report_fixture_deinit(&f);
	}
}

enum { MAX_DEPTH = 4, N_TASKS = 4 };

// Counts ticks for own functions, root first: as many as have a name.
static void add_path(struct report_fixture *f, uint32_t thread, const char *const *names,
                     const char *frame, int syscall, uint64_t ticks)
{
	uint32_t ids[MAX_DEPTH + 1] = {report_fixture_frame(f, frame)}, n = 0;

	while (n < MAX_DEPTH && names[n])
		n++;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t function = 0;
		while (function < f->symbols.n_functions &&
		       strcmp(f->symbols.functions[function].name, names[i]) != 0)
			function++;
		if (function == f->symbols.n_functions)
			function = report_fixture_function(f, names[i], names[i], "/src/prog.c");
		ids[n - i] = report_fixture_location(f, PROGRAM, 0x1000 + f->profile.n_locations,
		                                     &(struct fixture_line){function, 7}, 1);
	}
	report_fixture_wait(f, thread, THREAD_SLEEPING, ids, n + 1, STACK_COMPLETE,
	                    profile_intern_wait(&f->profile, syscall, "", ""), ticks);
}

// Threads wait on a condition, and sleep for the rest of the time.
static const struct {
	const char *name;
	const char *waits[MAX_DEPTH], *others[MAX_DEPTH];
	uint64_t ticks[N_TASKS]; // of sleeping
	const char *rules;
} tasks[] = {
    {"in a task", {"loop", "task", "get"}, {"loop", "task", "query"}, {50, 50, 50, 50}, "!pool"},
    {"for the next task", {"loop", "get"}, {"loop", "query"}, {50, 50, 50, 50}, "sleep"},
    {"for the next task, with a step between",
     {"loop", "next", "get"},
     {"loop", "query"},
     {50, 50, 50, 50},
     "sleep"},
    {"not always as many",
     {"loop", "task", "get"},
     {"loop", "task", "query"},
     {70, 70, 70, 70},
     "sleep"},
    {"always the same ones",
     {"loop", "task", "get"},
     {"loop", "task", "query"},
     {200, 0, 0, 0},
     "sleep"},
    {"in a function of a full queue",
     {"loop", "Queue::push"},
     {"loop", "query"},
     {50, 50, 50, 50},
     "!channel"},
    {"in a thread that pushes something elsewhere",
     {"push_worker"},
     {"push_worker", "query"},
     {50, 50, 50, 50},
     "sleep"},
    {"in a function of a name that begins alike",
     {"loop", "Queue::pushed"},
     {"loop", "query"},
     {50, 50, 50, 50},
     "sleep"},
    {"in a function that says so",
     {"loop", "pool.borrowOne"},
     {"loop", "query"},
     {50, 50, 50, 50},
     "!pool"},
};

static void test_tasks(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(tasks); i++) {
		struct report_fixture f;
		report_fixture_init(&f);
		for (int j = 0; j < N_TASKS; j++) {
			const uint32_t thread = report_fixture_thread(&f, 100 + j, "main");
			const uint64_t n = tasks[i].ticks[j];
			if (n < ALL_TICKS)
				add_path(&f, thread, tasks[i].waits, "pthread_cond_wait", SYS_futex,
				         ALL_TICKS - n);
			if (n > 0)
				add_path(&f, thread, tasks[i].others, "nanosleep", SYS_nanosleep,
				         n);
		}
		char *rules = found(&f);
		if (strcmp(rules, tasks[i].rules) != 0)
			fail_msg("%s: found \"%s\"", tasks[i].name, rules);
		free(rules);
		report_fixture_deinit(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rules),        cmocka_unit_test(test_why),
	    cmocka_unit_test(test_busy_machine), cmocka_unit_test(test_circle),
	    cmocka_unit_test(test_tasks),        cmocka_unit_test(test_gil_on_busy_machine),
	    cmocka_unit_test(test_line),         cmocka_unit_test(test_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

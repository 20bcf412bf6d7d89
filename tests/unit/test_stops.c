// SPDX-License-Identifier: MIT
// stops: who is asked to stop, who is spared, and what is noted of each, on processes that run,
// sleep, cannot be stopped, or are gone.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "events.h"
#include "held_time.h"
#include "maps.h"
#include "memory.h"
#include "proc.h"
#include "run_stats.h"
#include "sleeper.h"
#include "stops.h"
#include "target.h"
#include "tracee.h"
#include "tracee_stop.h"
#include "unit.h"

#define FAR_NS (120 * NS_PER_SECOND) // a machine that is busy, or paused, ends it long before

enum { USED_NS = 2000000, TAKEN_NS = 500000, MAX_TRIES = 300, N_TAKEN = 3 };

enum { EXEC_WAIT_NS = 100000000, MAX_EXEC_MS = 5000 };

enum { TICK_NS = 1000, LATER_NS = 2000, MAX_THREADS = 3, POLL_US = 1000, N_CPUS = 2 };

enum life { SPINS, SLEEPS, UNSTOPPABLE, TRACED };

// A process of one thread.
struct process {
	pid_t pid;
	pid_t parent; // that the test has started; the process itself, or its tracer
	int wake_fd;  // what is written to it wakes one that sleeps; its end lets one stop
	struct target target;
	struct maps maps;
};

static struct events events;
static struct run_stats stats;
static struct held_time hold;
static struct snapshot_buffer buffer;

static void live(enum life life, int fd)
{
	volatile unsigned long count = 0;
	char byte;

	while (life == SPINS)
		count++;
	if (life == UNSTOPPABLE && vfork() != 0)
		_exit(0);
	while (read(fd, &byte, 1) > 0)
		;
	_exit(0);
}

// Becomes the tracer of a child, which tells its pid by the pipe.
static void trace_child(int fd, int answer_fd)
{
	const pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		const pid_t pid = getpid();
		if (write(answer_fd, &pid, sizeof(pid)) == sizeof(pid))
			live(SLEEPS, fd);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	_exit(0);
}

static bool is_ready(const struct process *process, enum life life)
{
	struct target_thread *thread = process->target.threads[0];
	enum thread_state state;

	assert_true(sleeper_state(&process->target, thread, &state));
	if (life == SPINS)
		return true;
	return life == UNSTOPPABLE ? state == THREAD_DISK
	                           : sleeper_is_blocked(&process->target, thread);
}

static void start(struct process *process, enum life life)
{
	int fds[2], answer[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pipe(answer), 0);
	process->pid = process->parent = fork();
	assert_true(process->pid >= 0);
	if (process->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[1]);
		if (life == TRACED)
			trace_child(fds[0], answer[1]);
		live(life, fds[0]);
	}
	if (life == TRACED)
		assert_int_equal(read(answer[0], &process->pid, sizeof(process->pid)),
		                 sizeof(process->pid));
	close(answer[0]);
	close(answer[1]);
	close(fds[0]);
	process->wake_fd = fds[1];
	assert_null(target_open(process->pid, false, &process->target));
	process->target.threads[0]->hint.resident = &process->target.resident;
	process->maps = (struct maps){0};
	maps_read(&process->maps, process->pid, process->pid);
	while (!is_ready(process, life))
		usleep(POLL_US);
}

static void end(struct process *process)
{
	close(process->wake_fd);
	kill(process->parent, SIGKILL);
	waitpid(process->parent, NULL, 0);
	maps_deinit(&process->maps);
	target_close(&process->target);
}

// Copies the sleeper, as a tick does, so that it is known whether it sleeps on.
static void copy_asleep(struct process *process)
{
	struct target_thread *thread = process->target.threads[0];
	struct snapshot snapshot;
	enum thread_state state;

	while (sleeper_look(&process->target, thread, &process->maps, &buffer, &snapshot, &state) !=
	       SLEEPER_COPIED)
		usleep(POLL_US);
	snapshot_buffer_reset(&buffer);
}

// What happens to the process after it was looked at, and before it is asked.
enum meanwhile { NOTHING, WAKES, ENDS };

static void pass(struct process *process, enum meanwhile meanwhile)
{
	struct target_thread *thread = process->target.threads[0];

	if (meanwhile == WAKES) {
		assert_int_equal(write(process->wake_fd, "", 1), 1);
		while (!sleeper_has_moved(&process->target, thread))
			usleep(POLL_US);
	}
	if (meanwhile == ENDS) {
		kill(process->parent, SIGKILL);
		waitpid(process->parent, NULL, 0);
	}
}

enum fate { COPIED, HELD, SPARED, GONE, DENIED };

static const struct {
	const char *name;
	enum life life;
	bool asleep; // was copied asleep
	enum meanwhile meanwhile;
	bool spares, hold_all;
	enum fate fate;
} CASES[] = {
    {"runs", SPINS, false, NOTHING, true, false, COPIED},
    {"runs, --stop-all", SPINS, false, NOTHING, true, true, HELD},
    {"fell asleep since it was seen to run", SLEEPS, false, NOTHING, true, false, SPARED},
    {"the same, --stop-all", SLEEPS, false, NOTHING, true, true, SPARED},
    {"the same, but a stop is wanted", SLEEPS, false, NOTHING, false, false, COPIED},
    {"sleeps on", SLEEPS, true, NOTHING, true, false, COPIED},
    {"has woken since", SLEEPS, true, WAKES, true, false, SPARED},
    {"the same, but a stop is wanted", SLEEPS, true, WAKES, false, false, COPIED},
    {"has ended", SPINS, false, ENDS, true, false, GONE},
    {"is traced by another", TRACED, false, NOTHING, false, false, DENIED},
};

static void check_stop(const struct stops *stops, const struct stop *stop, enum fate fate)
{
	const struct target_thread *thread = stop->thread;

	assert_int_equal(stop->copied, fate == COPIED || fate == HELD);
	assert_int_equal(stop->over, fate != HELD);
	assert_int_equal(stop->denied, fate == DENIED);
	assert_int_equal(thread->gone, fate == GONE);
	assert_int_equal(thread->stop.pending, fate == HELD);
	assert_int_equal(tracee_has_any(), fate == HELD);
	assert_int_equal(hold.holding, fate == HELD);
	assert_false(stop->failed);
	assert_int_equal(stops->buffer->n_wanted, stop->copied);
	if (stop->copied)
		assert_true(stop->snapshot.n_regions > 0);
}

static void check_case(size_t i)
{
	struct process process;
	struct stops stops;

	print_message("# %s\n", CASES[i].name);
	start(&process, CASES[i].life);
	struct target_thread *thread = process.target.threads[0];
	stops_init(&stops, &hold, &buffer, &process.target, CASES[i].hold_all);
	if (CASES[i].asleep)
		copy_asleep(&process);
	pass(&process, CASES[i].meanwhile);
	stops_plan(&stops, thread, CASES[i].asleep ? THREAD_SLEEPING : THREAD_RUNNING,
	           CASES[i].asleep, TICK_NS);
	const bool spared = CASES[i].fate == SPARED;
	assert_int_equal(stops_ask(&stops, &process.maps, 0, CASES[i].spares), spared);
	assert_int_equal(thread->stop.slept_before_stop, spared);
	assert_int_equal(stops.count, !spared);
	assert_true(stops_wait(&stops, &process.maps, N_CPUS, TICK_NS, clock_now_ns() + FAR_NS));
	if (spared) {
		assert_false(tracee_has_any());
	} else {
		check_stop(&stops, &stops.items[0], CASES[i].fate);
		stops_let_all_go(&stops);
		assert_true(stops.items[0].over);
		assert_false(thread->stop.pending || tracee_has_any() || hold.holding);
		stops_note_counted(&stops, &stops.items[0]);
		assert_int_equal(buffer.n_wanted, 0);
	}
	stops_strike_off(&stops);
	assert_int_equal(stops.count, 0);
	stops_deinit(&stops);
	end(&process);
}

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(CASES); i++)
		check_case(i);
}

// One that cannot be stopped is waited for in the tick that has asked it, and in none after that.
// Its copy comes when it comes.
static void test_late(void **state)
{
	struct process process;
	struct stops stops;

	(void)state;
	start(&process, UNSTOPPABLE);
	struct target_thread *thread = process.target.threads[0];
	stops_init(&stops, &hold, &buffer, &process.target, false);
	stops_plan(&stops, thread, THREAD_DISK, false, TICK_NS);
	assert_int_equal(stops_ask(&stops, &process.maps, 0, false), 0);
	assert_true(stops_wait(&stops, &process.maps, N_CPUS, TICK_NS, clock_now_ns()));
	assert_int_equal(stops_poll(&stops, &process.maps, TICK_NS), 1);
	assert_int_equal(stops_poll(&stops, &process.maps, LATER_NS), 0);
	assert_true(thread->stop.pending && !stops.items[0].copied && !stops.items[0].over);
	stops_strike_off(&stops);
	assert_int_equal(stops.count, 1);
	close(process.wake_fd);
	assert_true(stops_wait(&stops, &process.maps, N_CPUS, TICK_NS, clock_now_ns() + FAR_NS));
	check_stop(&stops, &stops.items[0], COPIED);
	stops_note_counted(&stops, &stops.items[0]);
	stops_strike_off(&stops);
	stops_deinit(&stops);
	process.wake_fd = -1;
	end(&process);
}

// One that ends instead of stopping is not waited for any more.
static void test_ends_while_asked(void **state)
{
	struct process process;
	struct stops stops;

	(void)state;
	start(&process, UNSTOPPABLE);
	stops_init(&stops, &hold, &buffer, &process.target, false);
	stops_plan(&stops, process.target.threads[0], THREAD_DISK, false, TICK_NS);
	stops_ask(&stops, &process.maps, 0, false);
	assert_int_equal(stops_poll(&stops, &process.maps, TICK_NS), 1);
	kill(process.pid, SIGKILL);
	assert_true(stops_wait(&stops, &process.maps, N_CPUS, TICK_NS, clock_now_ns() + FAR_NS));
	check_stop(&stops, &stops.items[0], GONE);
	stops_deinit(&stops);
	end(&process);
}

// Where no copy has room, nothing is copied until some has been made.
static void test_no_room(void **state)
{
	struct process process;
	struct stops stops;

	(void)state;
	start(&process, SPINS);
	stops_init(&stops, &hold, &buffer, &process.target, false);
	stops_plan(&stops, process.target.threads[0], THREAD_RUNNING, false, TICK_NS);
	stops_ask(&stops, &process.maps, 0, true);
	buffer.used = buffer.size;
	assert_false(stops_wait(&stops, &process.maps, N_CPUS, TICK_NS, clock_now_ns() + FAR_NS));
	assert_true(stops_poll(&stops, &process.maps, LATER_NS) > 0);
	assert_false(stops.items[0].copied);
	assert_true(hold.no_room);
	hold.no_room = false;
	buffer.used = 0;
	assert_true(stops_wait(&stops, &process.maps, N_CPUS, TICK_NS, clock_now_ns() + FAR_NS));
	check_stop(&stops, &stops.items[0], COPIED);
	stops_note_counted(&stops, &stops.items[0]);
	stops_strike_off(&stops);
	stops_deinit(&stops);
	end(&process);
}

static void compute(int64_t ns)
{
	const int64_t until_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_read_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
		;
}

// Stops the process once, on the CPU that both have. Returns for how long it had been let go by
// the time that all was over.
static int64_t stop_once(struct process *process)
{
	struct stops stops;

	stops_init(&stops, &hold, &buffer, &process->target, false);
	stops_plan(&stops, process->target.threads[0], THREAD_RUNNING, false, TICK_NS);
	stops_ask(&stops, &process->maps, 0, true);
	assert_true(stops_wait(&stops, &process->maps, 1, TICK_NS, clock_now_ns() + FAR_NS));
	const int64_t since_ns = clock_now_ns() - stops.items[0].released_ns;
	check_stop(&stops, &stops.items[0], COPIED);
	assert_true(stops.items[0].released_ns >= stops.items[0].found_ns);
	stops_note_counted(&stops, &stops.items[0]);
	stops_strike_off(&stops);
	stops_deinit(&stops);
	return since_ns;
}

// One that takes the CPU as it is let go is not held meanwhile.
static void test_takes_cpu(void **state)
{
	cpu_set_t before, one;
	struct process process;
	int n_tries = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	start(&process, SPINS);
	for (int n_taken = 0; n_taken < N_TAKEN;) {
		assert_true(n_tries++ < MAX_TRIES);
		compute(USED_NS); // the process has a right to the CPU after that
		n_taken += stop_once(&process) > TAKEN_NS;
	}
	end(&process);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

// Nor does anybody make some between ticks: whoever stops then is let go without a copy.
static void test_no_room_between_ticks(void **state)
{
	struct process process;
	struct stops stops;

	(void)state;
	start(&process, SPINS);
	stops_init(&stops, &hold, &buffer, &process.target, false);
	stops_plan(&stops, process.target.threads[0], THREAD_RUNNING, false, TICK_NS);
	stops_ask(&stops, &process.maps, 0, true);
	buffer.used = buffer.size;
	hold.between_ticks = true;
	while (stops_poll(&stops, &process.maps, TICK_NS) > 0)
		usleep(POLL_US);
	hold.between_ticks = false;
	buffer.used = 0;
	assert_true(stops.items[0].failed && stops.items[0].over);
	assert_false(process.target.threads[0]->stop.pending || tracee_has_any());
	stops_note_counted(&stops, &stops.items[0]);
	assert_int_equal(buffer.n_wanted, 0);
	stops_strike_off(&stops);
	stops_deinit(&stops);
	end(&process);
}

// Only those from a position on are asked; who is spared, or counted, leaves the others in order.
static void test_order(void **state)
{
	struct process processes[MAX_THREADS];
	static const enum life lives[MAX_THREADS] = {SPINS, SLEEPS, SPINS};
	struct stops stops;

	(void)state;
	for (int i = 0; i < MAX_THREADS; i++)
		start(&processes[i], lives[i]);
	stops_init(&stops, &hold, &buffer, &processes[0].target, false);
	for (int i = 0; i < MAX_THREADS; i++)
		stops_plan(&stops, processes[i].target.threads[0], THREAD_RUNNING, false, TICK_NS);
	// The target is asked for the thread's process: each has one of its own here.
	stops.target = &processes[1].target;
	assert_int_equal(stops_ask(&stops, &processes[1].maps, 1, true), 1);
	assert_int_equal(stops.count, 2);
	assert_false(processes[0].target.threads[0]->stop.pending);
	assert_ptr_equal(stops.items[0].thread, processes[0].target.threads[0]);
	assert_ptr_equal(stops.items[1].thread, processes[2].target.threads[0]);
	stops_note_counted(&stops, &stops.items[0]);
	stops_strike_off(&stops);
	assert_int_equal(stops.count, 1);
	assert_ptr_equal(stops.items[0].thread, processes[2].target.threads[0]);
	assert_true(
	    stops_wait(&stops, &processes[2].maps, N_CPUS, TICK_NS, clock_now_ns() + FAR_NS));
	stops_note_counted(&stops, &stops.items[0]);
	stops_strike_off(&stops);
	assert_int_equal(stops.count, 0);
	stops_deinit(&stops);
	for (int i = 0; i < MAX_THREADS; i++)
		end(&processes[i]);
}

// A process in exec, which goes on when the death of its second thread is collected. Nobody can be
// seized in it before that.
struct in_exec {
	pid_t tracer; // of the second thread
	pid_t pid, second;
};

static void *be_traced(void *fd)
{
	const pid_t tids[] = {getpid(), gettid()};

	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	if (write(*(int *)fd, tids, sizeof(tids)) != sizeof(tids))
		_exit(1);
	for (;;)
		pause();
}

static void execute(int answer_fd)
{
	pthread_t second;
	pid_t tids[2];
	int fds[2];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pipe2(fds, O_CLOEXEC) == 0 && pthread_create(&second, NULL, be_traced, &fds[1]) == 0 &&
	    read(fds[0], tids, sizeof(tids)) == sizeof(tids) &&
	    write(answer_fd, tids, sizeof(tids)) == sizeof(tids))
		execlp("cat", "cat", (char *)NULL);
	_exit(1);
}

// Runs in the tracer: makes the first one stop, and lets the exec go on when that one has ended, or
// has not for too long. Tells which.
static void go_on_after(int first_wake_fd, int first_end_fd)
{
	struct pollfd end = {.fd = first_end_fd, .events = POLLIN};

	usleep(EXEC_WAIT_NS / 1000);
	close(first_wake_fd);
	const bool has_ended = poll(&end, 1, MAX_EXEC_MS) == 1;
	waitpid(-1, NULL, __WALL);
	_exit(has_ended ? 0 : 1);
}

static struct in_exec start_exec(int first_wake_fd, int first_end_fd)
{
	struct in_exec ret;
	struct proc_stat stat = {0};
	int answer[2];
	pid_t tids[2];

	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	ret.tracer = fork();
	assert_true(ret.tracer >= 0);
	if (ret.tracer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fork() == 0) {
			close(first_wake_fd);
			execute(answer[1]);
		}
		go_on_after(first_wake_fd, first_end_fd);
	}
	assert_int_equal(read(answer[0], tids, sizeof(tids)), sizeof(tids));
	close(answer[0]);
	close(answer[1]);
	ret.pid = tids[0];
	ret.second = tids[1];
	while (proc_read_stat(-1, ret.pid, ret.second, &stat) && stat.state != 'Z')
		usleep(POLL_US);
	assert_int_equal(stat.state, 'Z');
	return ret;
}

static struct {
	struct stops stops;
	struct process process;
} first;

static void serve_first(void *context)
{
	(void)context;
	stops_poll(&first.stops, &first.process.maps, 0);
}

// One that stops while the profiler waits for an exec in another process is let go meanwhile.
static void test_while_another_is_in_exec(void **state)
{
	struct process other = {0};
	struct stops stops;
	int end_fds[2], status;

	(void)state;
	assert_int_equal(pipe(end_fds), 0);
	start(&first.process, UNSTOPPABLE);
	close(end_fds[1]); // the first one keeps it open
	const struct in_exec in_exec = start_exec(first.process.wake_fd, end_fds[0]);
	close(first.process.wake_fd);
	stops_init(&first.stops, &hold, &buffer, &first.process.target, false);
	stops_plan(&first.stops, first.process.target.threads[0], THREAD_DISK, false, TICK_NS);
	stops_ask(&first.stops, &first.process.maps, 0, false);
	const int64_t held_ns = stats.held_ns - stats.held_waiting_ns;
	hold.server = (struct held_time_server){.serve = serve_first};

	assert_null(target_open(in_exec.pid, false, &other.target));
	other.target.threads[0]->hint.resident = &other.target.resident;
	stops_init(&stops, &hold, &buffer, &other.target, false);
	stops_plan(&stops, other.target.threads[0], THREAD_RUNNING, false, TICK_NS);
	stops_ask(&stops, &other.maps, 0, false);
	hold.server = (struct held_time_server){0};
	assert_true(first.stops.items[0].copied && first.stops.items[0].over);
	assert_true(stats.held_ns - stats.held_waiting_ns - held_ns < EXEC_WAIT_NS / 2);
	assert_int_equal(waitpid(in_exec.tracer, &status, 0), in_exec.tracer);
	assert_int_equal(status, 0);

	assert_true(stops_wait(&stops, &other.maps, N_CPUS, TICK_NS, clock_now_ns() + FAR_NS));
	kill(in_exec.pid, SIGKILL);
	close(end_fds[0]);
	snapshot_buffer_reset(&buffer);
	buffer.n_wanted = 0;
	stops_deinit(&stops);
	stops_deinit(&first.stops);
	target_close(&other.target);
	first.process.wake_fd = -1;
	end(&first.process);
}

static int begin(void **state)
{
	(void)state;
	events_init(&events);
	tracee_setup();
	held_time_init(&hold, &stats, &events);
	return snapshot_buffer_init(&buffer) ? 0 : -1;
}

static int finish(void **state)
{
	(void)state;
	snapshot_buffer_deinit(&buffer);
	held_time_deinit(&hold);
	events_deinit(&events, true);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_late),
	    cmocka_unit_test(test_ends_while_asked),
	    cmocka_unit_test(test_no_room),
	    cmocka_unit_test(test_no_room_between_ticks),
	    cmocka_unit_test(test_takes_cpu),
	    cmocka_unit_test(test_order),
	    cmocka_unit_test(test_while_another_is_in_exec),
	};

	if (!tracee_stop_is_permitted())
		return 77;
	return cmocka_run_group_tests(tests, begin, finish);
}

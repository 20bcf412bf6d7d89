// SPDX-License-Identifier: MIT
// calls GROUP SECONDS [seccomp] [ignored] [continued] [alone] [KIND]: system calls that a stop of
// the thread could disturb, made all the time by a thread for each kind. Groups: timed, woken,
// data, cut, sockets, interrupted, spared, served.
//
// seccomp: under a filter that kills whoever calls restart_syscall. ignored: while another process
// sends the threads signals that are ignored, which do nothing to a thread that nobody traces.
// continued: while it sends SIGCONT. alone: without a main thread, which has ended.
//
// Says for each kind: name, calls, faults, median and 90th percentile of the lateness in ms, and
// what the first fault was.
#include <dirent.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>

#include "torture.h"

static double end_s;

int is_over(void)
{
	return now_s() >= end_s;
}

void fault(struct kind *kind, const char *what, long result)
{
	if (kind->faults++ == 0)
		snprintf(kind->first_fault, sizeof(kind->first_fault), "%s: %ld, %s", what, result,
		         strerror(errno));
}

void leave_out(struct kind *kind, const char *why)
{
	if (kind->faults == 0)
		snprintf(kind->first_fault, sizeof(kind->first_fault), "left out: %s", why);
	usleep(1000);
}

// What is taken for waiting lies between the two looks at the clock.
struct beginning begin_call(void)
{
	const double start_s = now_s();

	return (struct beginning){start_s, waited_s()};
}

void note_time(struct kind *kind, const struct beginning *begun, double wanted_ms, double early_ms)
{
	const double waited_ms = (waited_s() - begun->waited_s) * 1e3;
	const double late_ms = (now_s() - begun->start_s) * 1e3 - wanted_ms;

	if (late_ms < -early_ms)
		fault(kind, "early, by us", (long)(late_ms * 1e3));
	if (!kind->late_ms)
		kind->late_ms = calloc(MAX_LATE, sizeof(float));
	if (kind->n_late < MAX_LATE)
		kind->late_ms[kind->n_late++] = (float)(late_ms - waited_ms);
}

FRAME void *repeat(void *argument)
{
	struct kind *kind = argument;

	do {
		kind->calls++;
		if (kind->ends_early && is_continued())
			leave_out(kind, "SIGCONT may end the rest early");
		else
			kind->run(kind);
	} while (!is_over());
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void tell(struct kind *kind)
{
	float median = 0, p90 = 0;
	char line[256];

	if (kind->n_late) {
		qsort(kind->late_ms, (size_t)kind->n_late, sizeof(float), compare);
		median = kind->late_ms[kind->n_late / 2];
		p90 = kind->late_ms[kind->n_late * 9 / 10];
	}
	snprintf(line, sizeof(line), "%s %ld %ld %.3f %.3f %s\n", kind->name, kind->calls,
	         kind->faults, (double)median, (double)p90, kind->first_fault);
	say(line);
}

// Kills whoever calls restart_syscall, as filters do that do not know of it.
static void forbid_restart(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_restart_syscall, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program))
		die("seccomp");
}

// To as many threads as there are, or `most`, but not to the first. A signal to the process as a
// whole may wake a thread that nobody traces, while the first one is traced: what that does to its
// call nobody can see.
static void send_to_threads(pid_t pid, int most, int number)
{
	char path[32];
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *tasks = opendir(path);
	while (tasks && most > 0 && (entry = readdir(tasks))) {
		const pid_t tid = atoi(entry->d_name);
		if (tid > 0 && tid != pid)
			most -= tgkill(pid, tid, number) == 0;
	}
	if (tasks)
		closedir(tasks);
}

// SIGURG, SIGWINCH and SIGCHLD are ignored by default, SIGUSR2 because it is told to be.
static void send_ignored(pid_t pid, int turn)
{
	static const int numbers[] = {SIGURG, SIGWINCH, SIGUSR2, SIGCHLD};

	send_to_threads(pid, INT_MAX, numbers[turn % 4]);
	usleep(100);
}

// Which does nothing to a process that runs, but the kernel wakes those of its threads that are
// traced, whichever it is sent to.
static void send_continue(pid_t pid, int turn)
{
	(void)turn;
	send_to_threads(pid, 1, SIGCONT);
	usleep(20000); // a call that begins anew each time takes longer than the time between
}

static void (*send_one)(pid_t pid, int turn);

int is_continued(void)
{
	return send_one == send_continue;
}

static pid_t begin_to_send(void)
{
	const pid_t parent = getpid();
	pid_t child;

	signal(SIGUSR2, SIG_IGN);
	child = fork();
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close_range(3, ~0u, 0); // the ends of sockets, which others are to close
	for (int i = 0; getppid() == parent; i++)
		send_one(parent, i);
	_exit(0);
}

// The kind of that name alone.
static struct kind *find_kind(const struct kind *kinds, const char *name)
{
	static struct kind alone[2];

	for (; kinds->name; kinds++)
		if (!strcmp(kinds->name, name))
			alone[0] = *kinds;
	if (!alone[0].name)
		die(name);
	return alone;
}

// Of all that has begun.
struct work {
	struct kind *kinds;
	pid_t sender; // 0: there is none
};

static void *finish(void *argument)
{
	const struct work *work = argument;

	ready();
	for (struct kind *kind = work->kinds; kind->name; kind++) {
		pthread_join(kind->thread, NULL);
		tell(kind);
	}
	if (work->sender)
		kill(work->sender, SIGKILL);
	say("end\n");
	exit(0);
}

int main(int argc, char **argv)
{
	static struct work work;
	static const struct {
		const char *name;
		struct kind *kinds;
	} groups[] = {
	    {"timed", timed_kinds},   {"woken", woken_kinds},    {"data", data_kinds},
	    {"cut", cut_kinds},       {"sockets", socket_kinds}, {"interrupted", interrupted_kinds},
	    {"spared", spared_kinds}, {"served", served_kinds},
	};
	struct kind *kinds = NULL;
	int alone = 0;

	for (size_t i = 0; argc > 2 && i < sizeof(groups) / sizeof(groups[0]); i++)
		if (!strcmp(argv[1], groups[i].name))
			kinds = groups[i].kinds;
	if (!kinds)
		die(argv[1]);
	for (int i = 3; i < argc; i++) {
		if (!strcmp(argv[i], "seccomp"))
			forbid_restart();
		else if (!strcmp(argv[i], "ignored"))
			send_one = send_ignored;
		else if (!strcmp(argv[i], "continued"))
			send_one = send_continue;
		else if (!strcmp(argv[i], "alone"))
			alone = 1;
		else
			kinds = find_kind(kinds, argv[i]);
	}
	end_s = now_s() + atof(argv[2]);
	for (struct kind *kind = kinds; kind->name; kind++)
		if (pthread_create(&kind->thread, NULL, repeat, kind))
			die("pthread_create");
	// Not before: a signal that comes while it is blocked, as in pthread_create, is not
	// ignored.
	if (send_one)
		work.sender = begin_to_send();
	work.kinds = kinds;
	if (!alone)
		finish(&work);
	help(finish, &work);
	pthread_exit(NULL); // the others go on without a main thread
}

// SPDX-License-Identifier: MIT
// signals queue SECONDS: another process queues realtime signals, numbered, 10,000 a second: to the
// process and, from within, to one thread. Each must come once, in order, with its number and
// sender, on the alternate stack. One thread computes meanwhile, another waits in calls that they
// interrupt.
//
// signals stops SECONDS: stops and continues a child of its own, by SIGSTOP and SIGTSTP; the pid of
// the child, which is what is to be profiled, is said first. Each stop and each continuation must
// be reported once, and the child's counting go on unchanged.
//
// signals children SECONDS: children end with statuses and signals of all kinds; SIGCHLD, wait4 and
// waitid must tell each of them rightly.
//
// Says: name, signals or rounds, faults.
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "torture.h"

#define PER_MS 10

static double end_s;

static void tell(const char *name, long n, long faults)
{
	char line[100];

	snprintf(line, sizeof(line), "%s %ld %ld 0 0\n", name, n, faults);
	say(line);
}

// What is shared with the other process.
struct shared {
	atomic_long sent, counted, continued;
};

static struct shared *shared;

// A stream of numbered signals, as its receiver sees it.
struct stream {
	volatile long received;
	long faults;
	pid_t sender;
};

static struct stream to_process, to_thread;
static char alternate[2][1 << 16];

static void receive(struct stream *stream, const siginfo_t *info)
{
	const char *here = __builtin_frame_address(0);

	if (info->si_code != SI_QUEUE || info->si_pid != stream->sender ||
	    info->si_value.sival_int != stream->received)
		stream->faults++;
	if ((here < alternate[0] || here >= alternate[1]) &&
	    (here < alternate[1] || here >= alternate[1] + sizeof(alternate[1])))
		stream->faults++;
	stream->received = info->si_value.sival_int + 1;
}

static void handle_process(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	receive(&to_process, info);
}

static void handle_thread(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	receive(&to_thread, info);
}

static void use_alternate(int i)
{
	const stack_t stack = {.ss_sp = alternate[i], .ss_size = sizeof(alternate[i])};

	sigaltstack(&stack, NULL);
}

static void block(int number, int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	pthread_sigmask(how, &set, NULL);
}

static atomic_int done;

static void *compute(void *argument)
{
	use_alternate(1);
	block(SIGRTMIN + 2, SIG_UNBLOCK);
	while (!atomic_load(&done))
		KEEP();
	return argument;
}

static void send_all(pid_t target)
{
	for (long i = 0; i == 0 || now_s() < end_s;) {
		for (int j = 0; j < PER_MS; i++, j++) {
			const union sigval value = {.sival_int = (int)i};
			while (sigqueue(target, SIGRTMIN + 1, value)) // too many are pending
				usleep(1000);
			atomic_store(&shared->sent, i + 1);
		}
		usleep(900);
	}
}

static void *send_to_thread(void *argument)
{
	pthread_t thread = *(pthread_t *)argument;
	long i = 0;

	while (i == 0 || now_s() < end_s) {
		for (int j = 0; j < PER_MS; i++, j++) {
			const union sigval value = {.sival_int = (int)i};
			while (pthread_sigqueue(thread, SIGRTMIN + 2, value))
				usleep(1000);
		}
		usleep(900);
	}
	return (void *)i;
}

// The last ones are on their way, perhaps to a thread that waits for a CPU.
static void wait_for_all(const struct stream *stream, long n)
{
	for (int i = 0; i < 10000 && stream->received < n; i++)
		usleep(1000);
}

static void queue(void)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
	const pid_t parent = getpid();
	pthread_t computer, sender;
	void *sent_to_thread;

	block(SIGRTMIN + 2, SIG_BLOCK);
	action.sa_sigaction = handle_process;
	sigaction(SIGRTMIN + 1, &action, NULL);
	action.sa_sigaction = handle_thread;
	sigaction(SIGRTMIN + 2, &action, NULL);
	use_alternate(0);
	block(SIGRTMIN + 1, SIG_BLOCK); // in all threads but this one
	to_thread.sender = parent;
	pthread_create(&computer, NULL, compute, NULL);
	pthread_create(&sender, NULL, send_to_thread, &computer);
	to_process.sender = fork();
	if (!to_process.sender) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		send_all(parent);
		_exit(0);
	}
	block(SIGRTMIN + 1, SIG_UNBLOCK);
	ready();
	while (now_s() < end_s + 0.2)
		usleep(100000);
	while (waitpid(to_process.sender, NULL, 0) < 0 && errno == EINTR) // by its signals
		;
	pthread_join(sender, &sent_to_thread);
	wait_for_all(&to_process, atomic_load(&shared->sent));
	wait_for_all(&to_thread, (long)sent_to_thread);
	atomic_store(&done, 1);
	pthread_join(computer, NULL);
	tell("to_process", atomic_load(&shared->sent),
	     to_process.faults + labs(atomic_load(&shared->sent) - to_process.received));
	tell("to_thread", (long)sent_to_thread,
	     to_thread.faults + labs((long)sent_to_thread - to_thread.received));
}

static void count_continued(int number)
{
	(void)number;
	atomic_fetch_add(&shared->continued, 1);
}

static void *sleep_a_lot(void *argument)
{
	for (;;)
		usleep(500);
	return argument;
}

static void run_child(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	signal(SIGCONT, count_continued);
	help(sleep_a_lot, NULL);
	for (;;)
		atomic_fetch_add(&shared->counted, 1);
}

// The next change of the child's state is the one that is wanted.
static int changes_to(pid_t child, int options, int number)
{
	int status = 0;

	if (waitpid(child, &status, WUNTRACED | WCONTINUED) != child)
		return 0;
	return options == WUNTRACED ? WIFSTOPPED(status) && WSTOPSIG(status) == number
	                            : WIFCONTINUED(status);
}

static void stops(void)
{
	const pid_t child = fork();
	long bad_stops = 0, bad_continues = 0, ran_on = 0, n = 0;
	char line[32];

	if (!child)
		run_child();
	while (!atomic_load(&shared->counted)) // its handler is not there yet
		usleep(1000);
	snprintf(line, sizeof(line), "%d\n", child);
	say(line);
	ready();
	for (; n == 0 || now_s() < end_s; n++) {
		const int number = n % 2 ? SIGSTOP : SIGTSTP;
		kill(child, number);
		bad_stops += !changes_to(child, WUNTRACED, number);
		const long counted = atomic_load(&shared->counted);
		usleep((useconds_t)random_below(6000));
		ran_on += atomic_load(&shared->counted) != counted;
		kill(child, SIGCONT);
		bad_continues += !changes_to(child, WCONTINUED, 0);
		// The next stop would take it back.
		for (int i = 0; i < 20000 && atomic_load(&shared->continued) <= n; i++)
			usleep(1000);
		usleep((useconds_t)random_below(6000));
	}
	// One too many?
	bad_stops += waitpid(child, NULL, WUNTRACED | WCONTINUED | WNOHANG) != 0;
	tell("stops", n, bad_stops);
	tell("continues", n, bad_continues);
	tell("handled", n, labs(atomic_load(&shared->continued) - n));
	tell("ran_while_stopped", n, ran_on);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static long end_as(long i)
{
	static const int numbers[] = {SIGKILL, SIGTERM, SIGSEGV, SIGUSR1};

	if (i % 3)
		_exit((int)(i % 256));
	signal(numbers[i / 3 % 4], SIG_DFL);
	kill(getpid(), numbers[i / 3 % 4]);
	pause();
	return 0;
}

static int is_right(long i, int code, int status)
{
	static const int numbers[] = {SIGKILL, SIGTERM, SIGSEGV, SIGUSR1};

	if (i % 3)
		return code == CLD_EXITED && status == i % 256;
	return (code == CLD_KILLED || code == CLD_DUMPED) && status == numbers[i / 3 % 4];
}

static void children(void)
{
	const struct timespec long_after = {20, 0}; // the child may have to wait for a CPU
	long n = 0, bad_wait = 0, bad_signal = 0;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ready();
	for (; n == 0 || now_s() < end_s; n++) {
		const pid_t child = n % 2 ? fork() : vfork();
		siginfo_t info = {0};
		int status;

		if (!child)
			end_as(n);
		bad_signal += sigtimedwait(&set, &info, &long_after) != SIGCHLD ||
		              info.si_pid != child || !is_right(n, info.si_code, info.si_status);
		info = (siginfo_t){0};
		bad_wait += waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) ||
		            !is_right(n, info.si_code, info.si_status);
		bad_wait += waitpid(child, &status, 0) != child ||
		            (WIFEXITED(status) ? !is_right(n, CLD_EXITED, WEXITSTATUS(status))
		                               : !is_right(n, CLD_KILLED, WTERMSIG(status)));
	}
	tell("sigchld", n, bad_signal);
	tell("wait", n, bad_wait);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	end_s = now_s() + atof(argv[2]);
	if (!strcmp(argv[1], "queue"))
		queue();
	else if (!strcmp(argv[1], "stops"))
		stops();
	else
		children();
	say("end\n");
	return 0;
}

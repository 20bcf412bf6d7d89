// quiet: have the threads that were asleep slept on? Told for all of them at once.
//
// Two figures tell it together. A thread that has run since has used CPU time, and the process's
// CPU clock (clock_getcpuclockid(3)) is the sum of what its threads have used, as
// /proc/PID/task/TID/schedstat shows it for each. But the kernel adds what a thread uses only when
// it is switched off, or at the next tick of the scheduler (kernel/sched/cputime.c,
// thread_group_cputime): one that has just begun to run is not seen. That one, and one that waits
// for a CPU, is among the runnable threads of the machine (load.h).
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct load;
struct target;

struct quiet {
	int64_t rest_ns;  // of the CPU clock, which no thread that lives has used
	int64_t clock_ns; // as last read; -1: never, or it cannot be read
	bool known;       // rest_ns is
};

void quiet_init(struct quiet *quiet);

// Reads the clock. True: it has moved since, or it cannot be told.
bool quiet_clock_moved(struct quiet *quiet, const struct target *target);

// The clock has stood still; n_others is load_others. True: no thread of the process runs or is
// ready, for nothing on the machine does. What else wants a CPU often does so for some microseconds
// only, and is waited for, for a small part of the time that it takes to look at all threads.
bool quiet_is_alone(struct quiet *quiet, const struct target *target, const struct load *load,
                    long n_others);

// Those threads of which n_running run or are ready were looked at just now, n_others being the
// machine's figure before that. True: no other thread of the process has run since its last look,
// none runs, and none is ready.
bool quiet_holds(struct quiet *quiet, const struct target *target, const struct load *load,
                 long n_others, long n_running);

// It does not hold, and so the others (thread->to_look_at) were looked at, too. Looks once more at
// what the first ones have used: if the clock shows no more than that since quiet_holds, what it
// shows beyond all threads is known.
void quiet_settle(struct quiet *quiet, const struct target *target);

// SPDX-License-Identifier: MIT
// proc: reads the files of /proc/PID that the profiler needs, with one small reader each.
//
// Every path goes through a living thread of the process (/proc/PID/task/TID/...): once the main
// thread has exited, /proc/PID/maps and exe are empty, while those of any living thread still work.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Fields of /proc/PID/task/TID/stat, proc(5); only those that are used.
struct proc_stat {
	char state;                  // R, S, D, T, t, Z, X, I
	uint64_t flags;              // PF_* of the kernel's sched.h
	uint64_t cpu_ticks;          // clock ticks on a CPU, in /proc/PID/stat the process's,
	uint64_t children_cpu_ticks; // and that of its children which it has waited for
	uint64_t n_threads;
	uint64_t start_time;  // in clock ticks since boot: with the pid, a process's identity
	uint64_t vsize_bytes; // changes whenever something is mapped or unmapped
	uint64_t start_code;  // the program's first executable address; 1 without permission
	uint64_t start_stack; // SP at the process's entry point; 0 without permission
	uint64_t processor;   // the CPU that it runs on, or ran on last; UINT64_MAX: not known
};

enum {                      // of the flags
	PROC_EXITING = 0x4, // PF_EXITING: it has begun to end, and goes on to do so
};

// Fields of /proc/PID/status; only those that are used.
struct proc_status {
	char state;
	int tgid;
	int ppid;
	int tracer_pid;    // 0: not traced
	int ns_pid;        // the pid that it has in its own namespace
	bool has_own_pids; // that namespace is inside of ours: other numbers, of threads as well
	int seccomp;       // 0: none, 2: filter
	bool no_new_privs; // prctl(2), PR_SET_NO_NEW_PRIVS
	unsigned int uid, euid, egid;
	// Sets of signals: number n is bit n - 1. Pending for the thread or its process.
	uint64_t signals_pending, signals_blocked, signals_ignored, signals_caught;
};

// /proc/TID/schedstat: the kernel's documentation, scheduler/sched-stats.
struct proc_schedstat {
	uint64_t cpu_ns;   // time on a CPU
	uint64_t delay_ns; // time waiting for one
	uint64_t runs;     // times scheduled
};

// /proc/TID/syscall, proc(5).
struct proc_syscall {
	bool running; // not blocked; the rest is unset
	int64_t nr;   // -1: blocked outside a system call
	uint64_t args[6];
	uint64_t sp, pc;
};

enum { PROC_NAME_SIZE = 64 }; // TASK_COMM_LEN is 16 for user threads

// Each returns false, with errno set, if the file cannot be read (ENOENT or ESRCH: it is gone).
bool proc_read_status(int pid, struct proc_status *ret);
bool proc_read_name(int pid, int tid, char ret[PROC_NAME_SIZE]);
bool proc_read_name_of(int comm_fd, char ret[PROC_NAME_SIZE]); // of an open /proc/.../comm

// Reads the kernel's function in which the thread sleeps (/proc/TID/wchan). False if it is not
// shown.
bool proc_read_wchan(int pid, int tid, char ret[PROC_NAME_SIZE]);

// Opens /proc/PID/task/TID/`file`; -1 with errno.
int proc_open(int pid, int tid, const char *file);

// Returns the first max_bytes of a thread's file, such as "net/tcp", with a NUL after them; NULL
// with errno. The caller frees.
char *proc_read_all(int pid, int tid, const char *file, size_t max_bytes, size_t *ret_size);

// Does the same for a process's file, such as "environ".
char *proc_read_whole(int pid, const char *file, size_t max_bytes, size_t *ret_size);

// Reads the path of the program that the process runs, without the " (deleted)" of one that has
// been replaced since. False if it is not known.
bool proc_read_exe(int pid, char *ret, size_t size);

// Where in its memory the words lie that a process was started with: strings, each with a NUL.
struct proc_words {
	uint64_t arguments, arguments_end;
	uint64_t environment, environment_end; // usually right behind the arguments
};

// False also without permission.
bool proc_find_words(int pid, struct proc_words *ret);

enum { PROC_ENVIRONMENT_BYTES = 256 << 10 }; // as far as an environment is read

// Returns the value of a variable in an environment, cut after PROC_ENVIRONMENT_BYTES; a NUL
// follows its `size` bytes. NULL: there is none, or it is empty, or the cut goes through it. The
// caller frees.
char *proc_find_variable(const char *text, size_t size, const char *name);

// Does the same for the environment that the process was started with; NULL also if not all of it
// can be read. Sets errno, to ENOENT if there is none. A process may keep the reader waiting, for
// ever: see untrusted_text.h.
char *proc_read_variable(int pid, const char *name);

// Reads all of the bytes of the thread's memory, which brings in pages that are not resident
// (resident.h does not). False if not all can be read.
bool proc_read_memory(int tid, uint64_t address, void *buffer, size_t size);

// Reads from an fd of proc_open, or once by path if fd is -1.
bool proc_read_stat(int fd, int pid, int tid, struct proc_stat *ret);

// True also of a thread that nobody has reaped yet, whose stop the kernel denies (EPERM).
bool proc_has_ended(int pid, int tid);

// True if the thread cannot stop now, perhaps for ever: it sleeps uninterruptibly, or has ended.
// False if it cannot be read.
bool proc_is_stuck(int pid, int tid);
bool proc_read_schedstat(int fd, int pid, int tid, struct proc_schedstat *ret);

// False if schedstat says nothing: before Linux 5.14 it is "0 0 0" of each thread, however often
// that has run, if the kernel is built without CONFIG_SCHEDSTATS and was started with nodelayacct.
bool proc_counts_runs(void);

// True if the flags are those of a thread that the kernel has made in the process, a worker that
// executes nothing of it: io_uring's (PF_IO_WORKER, since Linux 5.12), or any (PF_USER_WORKER,
// since 6.4). Before that the same bits say other things of ordinary threads: PF_VCPU,
// PF_USED_ASYNC (include/linux/sched.h). `release` is the kernel's, as uname(2) has it.
bool proc_is_kernels(uint64_t flags, const char *release);
bool proc_read_syscall(int fd, int pid, int tid, struct proc_syscall *ret);

// True if the thread is blocked; cheaper than proc_read_syscall. False also if it cannot be read.
bool proc_is_blocked(int fd, int pid, int tid);

// Parsers of the files' contents, for the readers above and for tests. False: malformed.
bool proc_parse_stat(const char *text, struct proc_stat *ret);
bool proc_parse_syscall(const char *text, struct proc_syscall *ret);

// Returns how many threads of the machine run or wait for a CPU, of the text of /proc/loadavg; -1:
// malformed.
long proc_parse_runnable(const char *text);

// Returns the pid that was given out last, of the same text; -1: malformed.
long proc_parse_last_pid(const char *text);

// Leaves what is not there at 0, and the state at '?'.
void proc_parse_status(const char *text, struct proc_status *ret);

// SPDX-License-Identifier: MIT
// tracee: controls one thread with ptrace(2), which only this, tracee_registers, tracee_rest and
// tracee_rescue call.
//
// It uses PTRACE_SEIZE and PTRACE_INTERRUPT, never PTRACE_ATTACH: no SIGSTOP is ever sent. It
// remembers seized threads, so that none is left behind, however the profiler ends; if the profiler
// dies, the kernel lets all of them go.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracee_stop.h"

struct registers;

enum tracee_result {
	TRACEE_OK,
	TRACEE_GONE,   // there is no such thread, or not any more
	TRACEE_DENIED, // EPERM: traced by another, or not permitted
};

enum tracee_wait {
	TRACEE_RUNS,    // has not stopped yet
	TRACEE_STOPPED, // stands still until tracee_release
	TRACEE_EXITED,  // is gone, and reaped
};

// Call it once, before all else. Blocks SIGCHLD, which tells of stops, and prepares for a deadlock
// of PTRACE_SEIZE with exec (see tracee.c).
void tracee_setup(void);

// Call it before a series of tracee_seize. Notes what has happened to seized threads: the SIGCHLD
// that told of it may have been read already.
void tracee_prepare(void);

// Makes the thread, of process `tgid`, a tracee; it runs on. If it executes a program before it is
// released, it stops in PTRACE_EVENT_EXEC: its tid may then be the main thread's, and nothing that
// was known of that thread applies to it.
enum tracee_result tracee_seize(int tid, int tgid);

// Asks a seized thread to stop. It executes no instruction of the program before it does.
// TRACEE_GONE: it has executed a program, or another thread of its process has, which has its tid
// now. tracee_poll then says TRACEE_EXITED; by itself it does not find out if that is our child.
enum tracee_result tracee_interrupt(int tid);

// Finds out whether the seized thread has stopped or gone. Never blocks. TRACEE_EXITED ends the
// seizure.
enum tracee_wait tracee_poll(int tid, struct tracee_stop *ret);

// Does the same, but waits as long as it takes.
enum tracee_wait tracee_wait(int tid, struct tracee_stop *ret);

// Reads the registers of a stopped thread, and its thread pointer. Also mends what the stop itself
// did to the thread's system call (syscall_mend.h). False if the thread is gone, or executes 32-bit
// code.
bool tracee_registers(int tid, struct tracee_stop *stop, struct registers *ret, uint64_t *ret_tls);

// Lets a stopped thread run on, untraced, with the signal that it was about to get. If it executed
// a program under trace, and so without its file's privileges, it executes it again.
void tracee_release(int tid, const struct tracee_stop *stop);

// Lets a stopped thread run on, still seized; if job control has stopped it, it stays stopped.
void tracee_continue(int tid, const struct tracee_stop *stop);

// Makes a signal handler call serve(context) the moment that a seized thread stops, whatever the
// profiler is busy with, until tracee_serve_in_turn. serve may do only what signal-safety(7)
// allows, and must not seize. Nor may anything seize until then, unless only_in_seize: then serve
// is called at once if one has stopped already, and while tracee_seize waits for the kernel.
void tracee_serve_at_once(void (*serve)(void *context), void *context, bool only_in_seize);
void tracee_serve_in_turn(void);

// True if any thread is seized.
bool tracee_has_any(void);

// True if that one is.
bool tracee_is_seized(int tid);

// Serves threads that stay seized after tracee_release: those whose call a stop has cut short,
// until its rest has ended (syscall_mend.h), and those that could not be let go, as they were about
// to end or executed a program. Call it whenever SIGCHLD came, and if tracee_take_unserved says so.
// Returns how many such threads there are.
size_t tracee_serve(void);

// True, once, if there may be something to serve or to poll of which no SIGCHLD will tell: the
// signal handler has taken it, or it came before a thread turned out to be one of the latter kind.
bool tracee_take_unserved(void);

// True if the thread is in the rest of a call: its stack is unchanged, and it cannot be seized.
bool tracee_is_in_rest(int tid);

// Returns what was done for the calls that stops have cut.
struct call_counts tracee_call_counts(void);

// Makes the signal handler let every seized thread go the moment that it stops, whatever the
// profiler is busy with. For threads that were interrupted in uninterruptible sleep, or waited for
// a CPU, when sampling ended. Threads in the rest of a call stay seized until its end; so does one
// that was not in uninterruptible sleep, if its call turns out to be cut short.
void tracee_abandon_all(void);

// Call these after tracee_abandon_all, while SIGCHLD is blocked. tracee_look_again does what the
// signal handler does: no signal tells that another thread's exec has taken the number of one that
// has ended. The next counts the threads in the rest of a call, and those that wait for a
// CPU and may get there. The last cuts these rests, which the signal handler then ends, for each
// thread when it gets a CPU. `awake`: those that sleep uninterruptibly are not counted.
void tracee_look_again(void);
size_t tracee_count_rests(bool awake);
void tracee_cut_rests(void);

// Watches for the end of `pid`, the profiler's own child; there is one at a time. Its parent and
// its tracer are one process, and the kernel reports each end once: if it ends while its main
// thread is seized, it is told here. tracee_child_has_ended is true then; *ret_status is as waitpid
// gives it.
void tracee_watch_child(int pid);
bool tracee_child_has_ended(int *ret_status);

// tracee_stop: what a stop of a traced thread is, as waitpid(2) tells of it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tracee_stop {
	int signal;       // to be delivered at the release; 0: none
	bool interrupted; // stopped because of tracee_interrupt alone
	bool group_stop;  // stopped by job control, and stays so after the release
	bool resumes;     // the system call that was interrupted begins again (tracee_registers)
	bool exec;        // stopped in PTRACE_EVENT_EXEC
	bool syscall;     // stopped at the entry or end of a system call
	int64_t call;     // the number of the system call that it is in; -1: none, or not known
	int exit_status;  // TRACEE_EXITED: as waitpid gives it
};

// Turns a status of waitpid into *ret. False: it is an exit.
bool tracee_stop_read(int status, struct tracee_stop *ret);

#include "tracee_stop.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

bool tracee_stop_read(int status, struct tracee_stop *ret)
{
	const int event = status >> 16;

	*ret = (struct tracee_stop){.call = -1, .exit_status = status};
	if (!WIFSTOPPED(status))
		return false;
	if (event == PTRACE_EVENT_STOP) {
		ret->interrupted = WSTOPSIG(status) == SIGTRAP;
		ret->group_stop = !ret->interrupted;
	} else if (event == PTRACE_EVENT_EXEC) {
		ret->exec = true;
	} else if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
		ret->syscall = true; // PTRACE_O_TRACESYSGOOD
	} else if (event == 0) {
		ret->signal = WSTOPSIG(status); // signal-delivery-stop
	}
	return true;
}

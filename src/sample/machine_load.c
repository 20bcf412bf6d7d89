// SPDX-License-Identifier: MIT
#include "machine_load.h"

#include <fcntl.h>
#include <unistd.h>

#include "proc.h"

void machine_load_init(struct machine_load *load)
{
	*load = (struct machine_load){
	    .fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC),
	    .n_cpus = sysconf(_SC_NPROCESSORS_ONLN),
	};
}

void machine_load_deinit(struct machine_load *load)
{
	if (load->fd >= 0)
		close(load->fd);
	load->fd = -1;
}

long machine_load_others(const struct machine_load *load)
{
	long last_pid;

	return machine_load_read(load, &last_pid);
}

long machine_load_read(const struct machine_load *load, long *ret_last_pid)
{
	char text[128];

	*ret_last_pid = -1;
	const ssize_t n = load->fd < 0 ? -1 : pread(load->fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	*ret_last_pid = proc_parse_last_pid(text);
	const long n_runnable = proc_parse_runnable(text);
	return n_runnable < 0 ? -1 : n_runnable - 1;
}

bool machine_load_is_crowded(const struct machine_load *load, long n_others)
{
	return n_others > load->n_cpus;
}

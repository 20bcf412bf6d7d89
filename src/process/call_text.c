// SPDX-License-Identifier: MIT
#include "call_text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "clock.h"
#include "memory.h"
#include "syscall_name.h"
#include "syscall_numbers.h"

enum {
	MAX_ARGUMENTS = 4,
	SECONDS_PER_MINUTE = 60,
	SECONDS_PER_HOUR = 3600,
	MAX_LEFT_S = 1000000000, // 30 years
};

// How to write an argument.
enum argument_kind {
	ARGUMENT_NUMBER = 1,
	ARGUMENT_DESCRIPTOR,  // its number, and what it is
	ARGUMENT_DESCRIPTORS, // a list of them: the first, and how many others there are
	ARGUMENT_LOCK,        // an address
	ARGUMENT_FUTEX,
	ARGUMENT_MILLISECONDS,
	ARGUMENT_TIMESPEC, // in memory; left out if there is none
	ARGUMENT_FUTEX_TIME,
	ARGUMENT_SLEEP_TIME,
	ARGUMENT_TIMEVAL,
	ARGUMENT_CLOCK,
	ARGUMENT_FLOCK,
	ARGUMENT_FCNTL,
	ARGUMENT_PROCESS,
	ARGUMENT_ID_TYPE,
	ARGUMENT_SIGNED,
};

struct call_row {
	int number;
	struct {
		uint8_t position, kind;
	} arguments[MAX_ARGUMENTS];
};

#define ONE_DESCRIPTOR                                                                             \
	{                                                                                          \
		{                                                                                  \
			0, ARGUMENT_DESCRIPTOR                                                     \
		}                                                                                  \
	}

static const struct call_row rows[] = {
    {SYS_futex,
     {{0, ARGUMENT_LOCK}, {1, ARGUMENT_FUTEX}, {2, ARGUMENT_NUMBER}, {3, ARGUMENT_FUTEX_TIME}}},
    {SYS_read, ONE_DESCRIPTOR},
    {SYS_readv, ONE_DESCRIPTOR},
    {SYS_pread64, ONE_DESCRIPTOR},
    {SYS_write, ONE_DESCRIPTOR},
    {SYS_writev, ONE_DESCRIPTOR},
    {SYS_pwrite64, ONE_DESCRIPTOR},
    {SYS_accept, ONE_DESCRIPTOR},
    {SYS_accept4, ONE_DESCRIPTOR},
    {SYS_connect, ONE_DESCRIPTOR},
    {SYS_recvfrom, ONE_DESCRIPTOR},
    {SYS_recvmsg, ONE_DESCRIPTOR},
    {SYS_recvmmsg, ONE_DESCRIPTOR},
    {SYS_sendto, ONE_DESCRIPTOR},
    {SYS_sendmsg, ONE_DESCRIPTOR},
    {SYS_sendmmsg, ONE_DESCRIPTOR},
    {SYS_sendfile, ONE_DESCRIPTOR},
    {SYS_splice, ONE_DESCRIPTOR},
    {SYS_fsync, ONE_DESCRIPTOR},
    {SYS_fdatasync, ONE_DESCRIPTOR},
    {SYS_syncfs, ONE_DESCRIPTOR},
    {SYS_ftruncate, ONE_DESCRIPTOR},
    {SYS_fallocate, ONE_DESCRIPTOR},
    {SYS_getdents64, ONE_DESCRIPTOR},
    {SYS_close, ONE_DESCRIPTOR},
    {SYS_ioctl, ONE_DESCRIPTOR},
    {SYS_io_uring_enter, ONE_DESCRIPTOR},
    {SYS_mq_timedreceive, ONE_DESCRIPTOR},
    {SYS_mq_timedsend, ONE_DESCRIPTOR},
    {SYS_flock, {{0, ARGUMENT_DESCRIPTOR}, {1, ARGUMENT_FLOCK}}},
    {SYS_fcntl, {{0, ARGUMENT_DESCRIPTOR}, {1, ARGUMENT_FCNTL}}},
    {SYS_poll, {{0, ARGUMENT_DESCRIPTORS}, {2, ARGUMENT_MILLISECONDS}}},
    {SYS_ppoll, {{0, ARGUMENT_DESCRIPTORS}, {2, ARGUMENT_TIMESPEC}}},
    {SYS_select, {{0, ARGUMENT_DESCRIPTORS}, {4, ARGUMENT_TIMEVAL}}},
    {SYS_pselect6, {{0, ARGUMENT_DESCRIPTORS}, {4, ARGUMENT_TIMESPEC}}},
    {SYS_epoll_wait, {{0, ARGUMENT_DESCRIPTOR}, {3, ARGUMENT_MILLISECONDS}}},
    {SYS_epoll_pwait, {{0, ARGUMENT_DESCRIPTOR}, {3, ARGUMENT_MILLISECONDS}}},
    {SYS_epoll_pwait2, {{0, ARGUMENT_DESCRIPTOR}, {3, ARGUMENT_TIMESPEC}}},
    {SYS_nanosleep, {{0, ARGUMENT_TIMESPEC}}},
    {SYS_clock_nanosleep, {{0, ARGUMENT_CLOCK}, {2, ARGUMENT_SLEEP_TIME}}},
    {SYS_rt_sigtimedwait, {{2, ARGUMENT_TIMESPEC}}},
    {SYS_wait4, {{0, ARGUMENT_PROCESS}}},
    {SYS_waitid, {{0, ARGUMENT_ID_TYPE}, {1, ARGUMENT_SIGNED}}},
    {SYS_msgrcv, {{0, ARGUMENT_NUMBER}}},
    {SYS_msgsnd, {{0, ARGUMENT_NUMBER}}},
    {SYS_semop, {{0, ARGUMENT_NUMBER}}},
    {SYS_semtimedop, {{0, ARGUMENT_NUMBER}, {3, ARGUMENT_TIMESPEC}}},
    {SYS_pause, {{0, 0}}},
    {SYS_rt_sigsuspend, {{0, 0}}},
};

struct call_writer {
	const uint64_t *args;
	const char *descriptor;
	const struct call_memory *memory;
};

struct value_name {
	uint64_t value;
	const char *name;
};

#define NAMED(value)                                                                               \
	{                                                                                          \
		value, #value                                                                      \
	}

static const struct value_name futex_names[] = {
    NAMED(FUTEX_WAIT),      NAMED(FUTEX_WAIT_BITSET),     NAMED(FUTEX_LOCK_PI),
    {13, "FUTEX_LOCK_PI2"}, NAMED(FUTEX_WAIT_REQUEUE_PI),
};
static const struct value_name clock_names[] = {
    NAMED(CLOCK_REALTIME),
    NAMED(CLOCK_MONOTONIC),
    NAMED(CLOCK_BOOTTIME),
    NAMED(CLOCK_PROCESS_CPUTIME_ID),
};
static const struct value_name flock_names[] = {NAMED(LOCK_SH), NAMED(LOCK_EX)};
static const struct value_name fcntl_names[] = {NAMED(F_SETLKW), NAMED(F_OFD_SETLKW)};
static const struct value_name id_names[] = {
    NAMED(P_ALL), NAMED(P_PID), NAMED(P_PGID), {3, "P_PIDFD"}};

// Returns a new string: the value's name, or the value itself.
static char *name_value(const struct value_name *names, size_t n, uint64_t value)
{
	for (size_t i = 0; i < n; i++)
		if (names[i].value == value)
			return memory_strdup(names[i].name);
	return memory_printf("%" PRIu64, value);
}

static char *futex_text(uint64_t op)
{
	_cleanup_free_ char *name =
	    name_value(futex_names, array_size(futex_names), op & FUTEX_CMD_MASK);

	return memory_printf("%s%s", name, op & FUTEX_PRIVATE_FLAG ? "_PRIVATE" : "");
}

void call_text_duration(int64_t ns, char ret[CALL_TEXT_DURATION_SIZE])
{
	const int64_t seconds = ns / NS_PER_SECOND;
	const int64_t hours = seconds / SECONDS_PER_HOUR, rest = seconds % SECONDS_PER_HOUR;
	const int minutes = (int)(rest / SECONDS_PER_MINUTE),
	          last = (int)(rest % SECONDS_PER_MINUTE);

	if (seconds < SECONDS_PER_MINUTE)
		snprintf(ret, CALL_TEXT_DURATION_SIZE, "%.2f s", clock_seconds(ns));
	else if (hours == 0)
		snprintf(ret, CALL_TEXT_DURATION_SIZE, "%d min %d s", minutes, last);
	else if (hours < 24)
		snprintf(ret, CALL_TEXT_DURATION_SIZE, "%" PRId64 ":%02d:%02d", hours, minutes,
		         last);
	else
		snprintf(ret, CALL_TEXT_DURATION_SIZE, "%" PRId64 " d %" PRId64 ":%02d:%02d",
		         hours / 24, hours % 24, minutes, last);
}

static bool read_time(const struct call_writer *writer, uint64_t address, bool timeval,
                      double *ret_s)
{
	const int64_t parts = timeval ? 1000000 : NS_PER_SECOND; // of a second
	int64_t time[2];

	if (!writer->memory ||
	    !writer->memory->read(writer->memory->context, address, time, sizeof(time)))
		return false;
	// Else the thread has gone on since its call was read, and other things are there.
	if (time[0] < 0 || time[0] > INT64_MAX / NS_PER_SECOND || time[1] < 0 || time[1] >= parts)
		return false;
	*ret_s = (double)time[0] + (double)time[1] / (double)parts;
	return true;
}

static char *time_text(const struct call_writer *writer, uint64_t address, bool timeval)
{
	double time_s;

	if (address == 0)
		return NULL;
	return read_time(writer, address, timeval, &time_s) ? memory_printf("%.9g s", time_s)
	                                                    : memory_printf("0x%" PRIx64, address);
}

// How long it is until that clock shows the time at the address. The clocks of a process in a time
// namespace of its own (time_namespaces(7)) are not looked for.
static char *left_text(const struct call_writer *writer, clockid_t clock, uint64_t address)
{
	char duration[CALL_TEXT_DURATION_SIZE];
	double time_s;

	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
		return memory_strdup("until a set time");
	if (!read_time(writer, address, false, &time_s))
		return time_text(writer, address, false);
	const double left_s = time_s - clock_seconds(clock_read_ns(clock));
	if (left_s > MAX_LEFT_S) // as those who mean for ever have it
		return memory_strdup("until a set time");
	call_text_duration(left_s > 0 ? (int64_t)(left_s * (double)NS_PER_SECOND) : 0, duration);
	return memory_printf("%s left", duration);
}

// Only FUTEX_WAIT takes a duration; the others take a time of a clock.
static char *futex_time_text(const struct call_writer *writer, uint64_t address)
{
	const uint64_t op = writer->args[1], command = op & FUTEX_CMD_MASK;
	const bool is_real = (op & FUTEX_CLOCK_REALTIME) || command == FUTEX_LOCK_PI;

	if (address == 0 || command == FUTEX_WAIT)
		return time_text(writer, address, false);
	return left_text(writer, is_real ? CLOCK_REALTIME : CLOCK_MONOTONIC, address);
}

static char *sleep_time_text(const struct call_writer *writer, uint64_t address)
{
	if (!(writer->args[1] & TIMER_ABSTIME))
		return time_text(writer, address, false);
	return left_text(writer, (clockid_t)writer->args[0], address);
}

static char *descriptor_text(const struct call_writer *writer, uint64_t number)
{
	return memory_printf("%d%s%s", (int)number, writer->descriptor[0] ? " " : "",
	                     writer->descriptor);
}

static char *process_text(uint64_t value)
{
	const int pid = (int)value;

	return pid == -1 ? memory_strdup("any child") : memory_printf("%d", pid);
}

// Returns a new string; NULL: the argument is left out.
static char *argument_text(const struct call_writer *writer, unsigned int position,
                           unsigned int kind)
{
	const uint64_t value = writer->args[position];

	switch ((enum argument_kind)kind) {
	case ARGUMENT_DESCRIPTOR:
		return descriptor_text(writer, value);
	case ARGUMENT_DESCRIPTORS:
		return memory_strdup(writer->descriptor[0] ? writer->descriptor : "...");
	case ARGUMENT_LOCK:
		return memory_printf("0x%" PRIx64, value);
	case ARGUMENT_FUTEX:
		return futex_text(value);
	case ARGUMENT_MILLISECONDS:
		return (int)value < 0 ? memory_strdup("-1")
		                      : memory_printf("%.9g s", (int)value / 1e3);
	case ARGUMENT_TIMESPEC:
		return time_text(writer, value, false);
	case ARGUMENT_FUTEX_TIME:
		return futex_time_text(writer, value);
	case ARGUMENT_SLEEP_TIME:
		return sleep_time_text(writer, value);
	case ARGUMENT_TIMEVAL:
		return time_text(writer, value, true);
	case ARGUMENT_CLOCK:
		return name_value(clock_names, array_size(clock_names), (uint32_t)value);
	case ARGUMENT_FLOCK:
		return name_value(flock_names, array_size(flock_names), value & ~(uint64_t)LOCK_NB);
	case ARGUMENT_FCNTL:
		return name_value(fcntl_names, array_size(fcntl_names), value);
	case ARGUMENT_PROCESS:
		return process_text(value);
	case ARGUMENT_ID_TYPE:
		return name_value(id_names, array_size(id_names), (uint32_t)value);
	case ARGUMENT_SIGNED:
		return memory_printf("%d", (int)value);
	case ARGUMENT_NUMBER:
		return memory_printf("%" PRIu32, (uint32_t)value);
	}
	return NULL;
}

static const struct call_row *find_row(int number)
{
	for (size_t i = 0; i < array_size(rows); i++)
		if (rows[i].number == number)
			return &rows[i];
	return NULL;
}

char *call_text(int number, const uint64_t args[6], const char *descriptor,
                const struct call_memory *memory)
{
	const struct call_row *row = find_row(number);
	const struct call_writer writer = {args, descriptor, memory};
	_cleanup_free_ char *name = syscall_name(number);
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	const char *separator = "";

	if (!stream)
		return memory_strdup(name);
	// cppcheck-suppress nullPointer ; syscall_name never returns NULL
	fprintf(stream, "%s(%s", name, row ? "" : "...");
	for (size_t i = 0; row && i < MAX_ARGUMENTS && row->arguments[i].kind; i++) {
		_cleanup_free_ char *argument =
		    argument_text(&writer, row->arguments[i].position, row->arguments[i].kind);
		if (!argument)
			continue;
		fprintf(stream, "%s%s", separator, argument);
		separator = ", ";
	}
	fputc(')', stream);
	fclose(stream);
	return text;
}

char *call_text_name(int number, const char *descriptor)
{
	_cleanup_free_ char *name = syscall_name(number);

	return memory_printf("%s(%s)", name, descriptor[0] ? descriptor : "...");
}

enum futex_wish call_futex_wish(const uint64_t args[6])
{
	switch (args[1] & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
		return FUTEX_WISH_WORD;
	case FUTEX_LOCK_PI:
	case 13: // FUTEX_LOCK_PI2, since Linux 5.14
		return FUTEX_WISH_PI;
	default:
		return FUTEX_WISH_NONE;
	}
}

bool call_futex_is_timed(const uint64_t args[6])
{
	return args[3] != 0;
}

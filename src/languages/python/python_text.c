// SPDX-License-Identifier: MIT
// python_text: what Python's programs are known by in text (language_text.h), and what a run tells
// of them.
#include "languages.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "memory.h"
#include "own_code.h"
#include "run_stats.h"
#include "text.h"

static const struct wait_rule waits[] = {
    {"take_gil", WAIT_NAME_RUNTIME_LOCK},
    {"PyThread_acquire_lock*", WAIT_NAME_BASE_LOCK},
    {"PyMutex_Lock*", WAIT_NAME_BASE_LOCK},
    {"Condition.wait", WAIT_NAME_RUNTIME_CONDITION},
    {"Thread._wait_for_tstate_lock", WAIT_NAME_RUNTIME_CONDITION}, // Thread.join
    // At the end of the program the main thread waits for the others.
    {"shutdown@/threading.py", WAIT_NAME_RUNTIME_CONDITION},
    // Before Python 3.11 names are without their classes.
    {"wait@/threading.py", WAIT_NAME_RUNTIME_CONDITION},
    {"wait_for_tstate_lock@/threading.py", WAIT_NAME_RUNTIME_CONDITION},
    {"queue_SimpleQueue_get*", WAIT_NAME_RUNTIME_CONDITION},
    {"worker@/concurrent/futures/thread.py", WAIT_NAME_WORKER}, // of a ThreadPoolExecutor
    {0},
};

static const char whole_lock[] = "GIL";
static const char *const locks[] = {whole_lock, NULL};

// Before Python 3.11 names are without their classes.
static const char *const pools[] = {
    "Semaphore.acquire", // threading
    "acquire@/threading.py",
    "QueuePool._do_get", // SQLAlchemy
    "_do_get@/sqlalchemy/pool/impl.py",
    NULL,
};

static const char *const gives[] = {"Queue.put", "put@/queue.py", "put@/multiprocessing/queues.py",
                                    NULL};
static const char *const results[] = {
    "Future.result",
    "result@/concurrent/futures/_base.py",
    "wait@/concurrent/futures/_base.py",
    "as_completed@/concurrent/futures/_base.py",
    "ApplyResult.wait", // multiprocessing.pool
    "wait@/multiprocessing/pool.py",
    NULL,
};
static const char *const asks_to_collect[] = {"gc_collect_impl", NULL};
static const char *const children[] = {"Popen.communicate", "Popen.wait",
                                       "communicate@/subprocess.py", "wait@/subprocess.py", NULL};

static const char *const files[] = {
    "python", "python[23]*", "libpython*", "pypy*", "libpypy*", NULL,
};

// The folder of a version's library, as in "/usr/lib/python3.11/".
static bool is_in_folder(const char *path)
{
	static const char *const ends[] = {"/", ".zip/", "zip/", "t/",
	                                   NULL}; // "t": without the GIL

	for (const char *at = path; (at = strstr(at, "/python")); at++) {
		const char *version = at + strlen("/python");
		const size_t length = strspn(version, "0123456789.");
		if (length >= 2 && text_begins_with_any(version + length, ends))
			return true;
	}
	return false;
}

static bool is_packaged(const char *path)
{
	return strstr(path, "/site-packages/") || strstr(path, "/dist-packages/") ||
	       is_in_folder(path);
}

static enum code_owner owner(const struct code_place *place)
{
	static const char *const frozen[] = {"<frozen ", NULL};

	return place->kind == MODULE_RUNTIME && text_begins_with_any(place->file, frozen)
	           ? CODE_OF_LANGUAGE
	           : CODE_OF_NOBODY;
}

static const struct run_language *figures_of(const struct run_stats *stats)
{
	return &stats->languages[language_position(&python_language)];
}

static void print_unread(const struct run_stats *stats, FILE *stream)
{
	const struct run_language *python = figures_of(stats);
	const uint64_t n_replaced = python->faults[RUNTIME_FAULT_NO_LOOP];

	if (python->unknown > 0)
		fprintf(
		    stream,
		    "profiler: Python 3.%d is not known to this profiler: only the interpreter's "
		    "frames are shown\n",
		    python->unknown);
	else if (python->unknown)
		fputs("profiler: a Python is not known to this profiler: only the interpreter's "
		      "frames are shown\n",
		      stream);
	if (python->is_stripped)
		fputs("profiler: functions of Python are not shown: the interpreter in the program "
		      "has no symbols (keep the program's symbol table)\n",
		      stream);
	if (n_replaced > 0)
		fprintf(
		    stream,
		    "profiler: %ju stack%s without the frames of Python: the interpreter's own "
		    "loop does not run them, so a library has probably replaced it (eval_frame)\n",
		    (uintmax_t)n_replaced, text_plural(n_replaced));
	if (python->other[0]) {
		_cleanup_free_ char *other =
		    text_clean(python->other, strlen(python->other), sizeof(python->other));
		fprintf(stream,
		        "profiler: %s has a Python of its own: its functions are not shown\n",
		        other);
	}
}

static void print_faults(const struct run_stats *stats, FILE *stream)
{
	static const char *const reasons[N_RUNTIME_FAULTS] = {
	    [RUNTIME_FAULT_EARLY] = "of an interpreter whose version was not in memory",
	    [RUNTIME_FAULT_NO_STATE] = "of new threads",
	    [RUNTIME_FAULT_UNREADABLE] = "with frames that could not be read",
	    [RUNTIME_FAULT_NO_PLACE] = "whose frames have no place in the machine's stack",
	};
	const struct run_language *python = figures_of(stats);
	uint64_t total = 0;

	for (int fault = 0; fault < N_RUNTIME_FAULTS; fault++)
		total += reasons[fault] ? python->faults[fault] : 0;
	if (total > 0) {
		fprintf(stream,
		        "profiler: %ju stack%s without the frames of Python:", (uintmax_t)total,
		        text_plural(total));
		const char *separator = "";
		for (int fault = 0; fault < N_RUNTIME_FAULTS; fault++) {
			if (!reasons[fault] || python->faults[fault] == 0)
				continue;
			fprintf(stream, "%s %ju %s", separator, (uintmax_t)python->faults[fault],
			        reasons[fault]);
			separator = ",";
		}
		fputc('\n', stream);
	}
	if (python->faults[RUNTIME_FAULT_UNNAMED])
		fprintf(stream,
		        "profiler: %ju stack%s with a function of Python that was gone before its "
		        "name was read\n",
		        (uintmax_t)python->faults[RUNTIME_FAULT_UNNAMED],
		        text_plural(python->faults[RUNTIME_FAULT_UNNAMED]));
	if (python->faults[RUNTIME_FAULT_TOO_DEEP])
		fprintf(stream,
		        "profiler: %ju stack%s with more Python calls than are shown: some "
		        "are missing at [more calls]\n",
		        (uintmax_t)python->faults[RUNTIME_FAULT_TOO_DEEP],
		        text_plural(python->faults[RUNTIME_FAULT_TOO_DEEP]));
}

static void print_figures(const struct run_stats *stats, FILE *stream)
{
	const struct run_language *python = figures_of(stats);

	if (python->guessed)
		fprintf(stream,
		        "profiler: Python 3.%d is read as the newest known version: all that was "
		        "checked fits\n",
		        python->guessed);
}

const struct language_text python_text = {
    .waits = waits,
    .locks = locks,
    .whole_lock = whole_lock,
    .pools = pools,
    .gives = gives,
    .results = results,
    .asks_to_collect = asks_to_collect,
    .children = children,
    .files = files,
    .is_packaged = is_packaged,
    .owner = owner,
    .print_unread = print_unread,
    .print_faults = print_faults,
    .print_figures = print_figures,
};

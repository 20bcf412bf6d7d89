// SPDX-License-Identifier: MIT
// options: the command line, parsed and checked. Nothing here touches the target.
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent_command.h"
#include "diff_command.h"
#include "dump_command.h"
#include "profile.h"
#include "push_options.h"
#include "runtimes.h"
#include "selection.h"
#include "time_point.h"
#include "top_command.h"
#include "trigger.h"

struct debug_sources;
struct error;
struct options;
struct verb;
struct writer;

enum {
	OPTIONS_RING_BYTES = 64 << 20, // defaults
	OPTIONS_MAX_THREADS = 1000,
	OPTIONS_NO_STATE = 1 << N_THREAD_STATES, // of options_selection: nothing is left
};

struct options {
	const struct verb *verb; // never NULL after options_parse
	bool help, version;      // if one is set, it is printed, and nothing else is set
	bool help_all;           // with help: of all options
	int pid;                 // 0: wrap a command
	int *more_pids;          // sampled together with pid
	size_t n_more_pids, more_pids_capacity;
	char *const *command;  // NULL-terminated, borrowed from argv; NULL with pid
	const char *recording; // report, view, dump, top: the file, without pid and
	                       // command; diff: the first one
	bool normalize;        // diff
	int64_t duration_ns;   // 0: until the end
	double frequency_hz;
	bool serves;                 // view: its page, on this port of the loopback interface
	uint16_t serve_port;         // 0: any
	const char *title;           // of a page; NULL: its own
	const char *output;          // as given; NULL: the default
	const struct writer *writer; // of a profile; NULL after options_parse: the verb writes none
	bool answers; // on a terminal: tables, and but for --waits a page with a name of its own
	bool threads;
	bool on_cpu, off_cpu;
	unsigned int states; // --state: bits as in struct selection; 0: all
	bool has_regex[N_SELECTION_REGEXES];
	regex_t regexes[N_SELECTION_REGEXES];
	struct label_filter *label_filters;
	size_t n_label_filters, label_filters_capacity;
	const char **label_frames; // NULL-terminated keys; the strings are argv's; NULL: none
	size_t n_label_frames, label_frames_capacity;
	bool inlines, lines, syscalls;
	uint32_t max_depth, huge_depth; // max_frames and huge_frames of the sampler
	bool stop_all;
	bool children;
	bool locks; // tell who holds locks that are waited for
	bool blame; // show what those do who make others wait (blame.h)
	bool kernel;
	unsigned int runtimes; // kinds (runtimes.h)
	enum runtime_frames runtime_frames;
	bool system_tasks;
	bool task_ids, no_creators;
	double max_overhead_percent;    // 0: no limit
	struct time_point from, to;     // the part of the time that is written
	uint64_t max_size_bytes;        // of a recording; 0: no limit
	bool symbols;                   // look up names for a recording
	const char **debug_directories; // NULL-terminated; the strings are argv's; NULL: none
	size_t n_debug_directories, debug_directories_capacity;
	bool debuginfod;
	int64_t ring_ns; // the flight recorder's window; 0: none
	uint64_t ring_bytes;
	int64_t every_ns;           // of windows; 0: none
	size_t keep;                // how many of the windows' last files are kept; 0: all
	int64_t waits_ns;           // --waits: shows only waits as long as this; 0: not given
	size_t max_threads;         // for --waits; 0: the default
	const char *exec;           // a command to run for each window; NULL: none
	struct triggers triggers;   // make the flight recorder write its window
	const char *metrics;        // the file; NULL: none
	int ready_fd;               // is written to after the first tick; -1: none
	struct agent_options agent; // `profiler agent`
	struct diff_options diff;   // `profiler diff`
	struct dump_options dump;   // `profiler dump`
	struct push_options push;   // --push and `profiler push`
	struct top_options top;     // `profiler top`
	bool quiet, verbose;
	bool tells_lacks;  // what the profile lacks: children, threads, names; even if quiet
	bool tells_damage; // of a recording, even if quiet
	uint32_t seed;     // for the places of ticks within their periods; 0: a random one
};

// Returns what the options select of a profile; borrowed from options.
struct selection options_selection(const struct options *options);

// Sets where debug files are looked for. libdw then asks no server of its own accord.
struct error *options_debug_sources(const struct options *options, struct debug_sources *ret);

// Parses argv. A mistake is an error (EXIT_STATUS_USAGE) that says in one line what to do.
struct error *options_parse(int argc, char **argv, struct options *ret);
void options_deinit(struct options *options);

// Adds the process ids of a text such as "12", "12,13" or "12 13" (pidof); `what` begins the
// message if it is not one.
struct error *options_add_pids(struct options *options, const char *text, const char *what);

// True if the profile may hold more than one process.
bool options_has_several(const struct options *options);

// Returns the text of --help, or --help-all, for options->verb, owned by the caller.
char *options_help(const struct options *options);

// Returns an error (EXIT_STATUS_USAGE) that says what to do if files are to go to standard output
// (-o -); NULL else.
struct error *options_check_directory(const struct options *options);

// SPDX-License-Identifier: MIT
// explain: finds what takes a profile's time, and why. What samples do is sorted into the causes of
// a table of rules; each rule says from which share on it is worth telling. Shares are of the time
// in which threads were not idle, as in the tables of top and of a run; sleeping is idle there.
// A fault is what keeps threads from their work: other threads, too few CPUs, a pool that is empty.
// All else describes the work itself, computing or waiting for a disk: whether it should take so
// long only its author can tell.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample_kind.h"
#include "stack_marks.h"
#include "string_table.h"

struct function;
struct report;
struct served_ports;
struct stack;

enum { MAX_FINDINGS = 5, MAX_CAUSES = 2 };

// What a sample's time goes to.
enum rule {
	RULE_IDLE, // waits for work: not told
	RULE_CIRCLE,
	RULE_CPU,
	RULE_GIL,
	RULE_COLLECT,
	RULE_COLLECT_YOUNG, // of findings: RULE_COLLECT that is no fault
	RULE_LOCK,
	RULE_SWAP,
	RULE_FILE,
	RULE_LOOKUP,
	RULE_CHILD,
	RULE_PEER,
	RULE_POOL,
	RULE_SEND,
	RULE_SLEEP,
	RULE_HOT,
	RULE_RESULT,    // this and those below are told if there is nothing else to tell
	RULE_ONLY_PEER, // by threads that do nothing else, as the next one
	RULE_ONLY_SLEEP,
	N_RULES,
	RULE_ALLOCATES = N_RULES, // of rows: not told by itself, but what RULE_COLLECT collects
};

struct explain_rule {
	const char *name; // in JSON
	const char *does; // what the function does, as in "handle waits for a lock"
	int least_percent;
	bool is_fault;
	const char *command; // options of the command that shows it
};

extern const struct explain_rule explain_rules[N_RULES];

// An own function in a stack, root first.
struct place {
	uint32_t function; // of the symbols
	uint32_t line;     // 0: not known
	uint32_t link;     // 0: of the thread itself; n: of the n-th that it waits for
};

// What a sample adds.
struct row {
	enum rule rule;
	uint32_t n, n_own; // places; of the thread itself
	size_t first;      // in places
	uint32_t why;      // string
	double ns;
};

struct cause {
	size_t row; // one of its samples
	uint32_t n; // how many of that row's places it has
	double ns;
};

// The samples of a rule that go through the same function.
struct finding {
	enum rule rule;
	size_t row;     // one of them
	uint32_t depth; // of the function among the row's places, from 1 on; 0: none has a name
	double ns;
	struct cause causes[MAX_CAUSES]; // the largest first
	size_t n_causes;
};

struct explanation {
	const struct report *report;
	struct sample_kinds kinds;
	struct stack_marks marks;
	struct served_ports *served;
	uint8_t *own; // of each line of the symbols: 0: not looked at, 1: of other code, 2: own
	struct string_table strings;
	struct place *places;
	size_t n_places, places_capacity;
	struct row *rows;
	size_t n_rows, rows_capacity;
	double *busy_ns, *ready_ns, *total_ns; // by thread; ready_ns: of busy_ns, waiting for a CPU
	double active_ns, all_ns; // active_ns without all_ready_ns if the machine is busy
	double all_ready_ns;      // waiting for a CPU
	double sleep_ns;          // RULE_SLEEP: not active
	double only_ns;           // RULE_RESULT and those after it: not active
	double cpu_ns;            // computing
	double collect_ns;        // of that, collecting garbage: RULE_COLLECT
	double collect_all_ns;    // of that, looking at all memory
	double collect_spare_ns;  // of collect_ns, on CPUs that nothing else of the program needs
	double send_ns[N_RULES];  // RULE_SEND, RULE_POOL and RULE_RESULT
	bool machine_is_busy;     // it waits for CPUs that other processes use, which is no finding
	struct finding findings[MAX_FINDINGS];
	size_t n_findings;
};

// True if it tells of collecting garbage.
static inline bool explain_is_garbage(enum rule rule)
{
	return rule == RULE_COLLECT || rule == RULE_COLLECT_YOUNG;
}

// Explains the report, which is borrowed. explain_free must follow.
void explain_make(const struct report *report, struct explanation *ret);
void explain_free(struct explanation *explanation);

// Returns the time of which the rule's findings are shares.
double explain_whole_ns(const struct explanation *explanation, enum rule rule);

// Returns the function of that number.
const struct function *explain_function(const struct explanation *explanation, uint32_t id);

// True if the rule is told only where nothing else is.
bool explain_is_last(enum rule rule);

// True if the i-th sample is a part of what is explained.
bool explain_is_selected(const struct explanation *explanation, size_t i);

// Returns the program's own functions in the stack itself, root first; NULL if there are none. They
// are the explanation's, until the next call.
const struct place *explain_own_places(struct explanation *explanation, const struct stack *stack,
                                       uint32_t *ret_n);

// Returns the places of that row.
const struct place *explain_places(const struct explanation *explanation, size_t row);

// SPDX-License-Identifier: MIT
// language: what the profiler knows of one language's programs. Each has a folder in src/languages
// and a line in the table there (languages.c); nothing else names a language.
//
// A function that a language does not need is NULL. A language that is not in a process costs
// nothing there. A language trusts nothing that it reads, stops no thread and makes up no name: if
// something does not fit, the machine's frames stay as they are.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "module.h"
#include "profile.h"
#include "rule.h"

struct address_space;
struct arch_code;
struct code_address;
struct language_tasks;
struct registers;
struct runtimes_setup;
struct snapshot;
struct snapshot_copy;
struct snapshot_hint;
struct snapshot_note;
struct unwinder;
struct unwound;

enum {
	LANGUAGES_MAX = MODULE_MAX_LANGUAGES,
	LANGUAGE_WORDS = 4, // that a language keeps during a walk
};

// Code whose rule is asked for.
struct language_code {
	const struct code_address *at; // its place, and the address space
	uint64_t address;              // as `at` has it; of a return address: this one itself
	bool is_call;                  // it is a return address: at->address lies in the call
	bool is_jit;                   // no file holds the code
	const struct arch_code *code;  // reads it; what it reads through this is compared later
	void *process;                 // what the language keeps of the process; NULL: nothing
};

// The walk's next move: go on, or end with a reason.
struct move {
	bool go_on;
	bool begins; // the next frame's function has not begun: its pc is not a return address
	enum stack_end end;
};

static inline struct move move_end_with(enum stack_end end)
{
	return (struct move){.end = end};
}

static inline struct move move_go_on(void)
{
	return (struct move){.go_on = true};
}

// One step of a walk (unwind.h has what it may use).
struct language_step {
	struct unwinder *unwinder;
	const struct snapshot *snapshot;
	const struct snapshot_note *note; // the language's, in the snapshot
	const struct rule *rule;          // of this frame; its `words` are the language's own
	bool is_return;                   // the frame's pc is a return address
	size_t n;                         // the frame's number; 0: the innermost one
	void **process;                   // what the language keeps of the process
	language_word *words;             // its LANGUAGE_WORDS for this walk; 0 at its start
	struct registers *registers;      // the frame's, to become its caller's
};

// A thread whose walk is over, or which is being copied.
struct language_thread {
	int tid;
	uint64_t tls;        // the thread pointer; 0: not known
	const void *process; // what the language keeps of the process; NULL: nothing
	void **own;          // what it keeps of the thread: free()d with it; NULL at first
};

// What a copy lacks that the language now knows of.
enum language_lack {
	LANGUAGE_LACKS_NOTHING,
	LANGUAGE_LACKS_COPY, // another copy has it
	LANGUAGE_LACKS_STOP, // it is known only when the thread is stopped
};

struct language {
	const char *name; // as in --runtimes=

	// --- Whether the process has it. What the language keeps of a process is its own struct,
	// made by `find`, by `claim`, or by `step` (through language_step.process), and given to
	// `destroy` when the process ends or executes another program; what `claim` has made, also
	// when the process's files have changed, before it is asked again.

	// Looks for the language whenever the process's files have changed; NULL: it is not there.
	// *ret_is_early: what tells its version is not in memory yet; only `merge` and `destroy`
	// are called of it then. `setup` stays valid until `destroy`.
	void *(*find)(const struct runtimes_setup *setup, int tid, bool *ret_is_early);

	// Claims JIT code: looks for what a file that has the language holds, once in each file of
	// a process that was seen to run code without a file. Called in guarded work. Returns what
	// it has found, which is free()d with the module; NULL: nothing.
	void *(*look_in_file)(struct module *module);
	// The process has a module with such findings, at `bias` above its own addresses. Returns
	// what is kept of the process; NULL: it is not there after all.
	void *(*claim)(struct address_space *space, struct module *module, const void *found,
	               uint64_t bias);
	void (*destroy)(void *process);

	// --- The rule for an address. It is asked once for a place; the rule is kept, and made
	// again if code of a JIT differs that it was made from. The caller owns *ret. If the
	// language has a `step`, that is called for each frame with the rule.

	// Code in a file, whatever its tables say. Called in guarded work.
	bool (*rule_before_tables)(const struct language_code *code, struct rule *ret);
	// Code that no table covers: in a file (in guarded work), or of a JIT.
	bool (*rule)(const struct language_code *code, struct rule *ret);
	// Makes a better rule where a table's row holds for very much code. It has no expression,
	// and no `step` takes it.
	bool (*refine)(const struct language_code *code, const struct rule *row, struct rule *ret);
	// Returns the last place before the address at which one of its functions may begin, by the
	// look of JIT code; 0: not known.
	uint64_t (*find_start)(const struct arch_code *code, uint64_t address);
	// As struct arch_code's.
	bool (*rule_at_jump)(const struct arch_code *code, uint64_t end, bool keeps_fp,
	                     struct rule *ret);

	// --- A thread's stack.

	// While the thread stands still, before its stack is copied: finds where its stacks are
	// (snapshot.h). Called as `copy` is. Async-signal-safe.
	void (*ask)(const struct language_thread *thread, struct snapshot_copy *copy);
	// While the thread stands still, after its stack was copied: copies other stacks and memory
	// that its steps need (snapshot.h). Called if the language keeps anything of the
	// process or of the thread. Async-signal-safe.
	void (*copy)(const struct language_thread *thread, struct snapshot_copy *copy);
	// Goes to the frame's caller.
	struct move (*step)(struct language_step *step);
	// After the walk: notes what it has shown of the thread, for its next copy.
	void (*learn)(const struct language_thread *thread, const language_word *words,
	              const struct unwound *stack);
	// After a walk that has ended with STACK_SWITCHED: tells what would show more.
	enum language_lack (*lacks)(const struct language_thread *thread,
	                            const struct snapshot_note *note);

	// --- What it adds to a stack, for languages that `find` has found.

	// Called in each tick, before the threads are looked at.
	void (*update)(void *process, int tid, int64_t now_ns);
	// As runtimes_name_futex and runtimes_name_thread.
	char *(*name_futex)(void *process, int tid, uint64_t futex);
	char *(*name_thread)(void *process, int tid);
	// As runtimes_look_ahead. `note` and `room` are as for `read`; NULL: read nothing.
	void (*look_ahead)(const void *process, int tid, void *note, size_t room);
	// Reads what is needed of the thread, which stands still and was copied, into `note`;
	// returns how many of its `room` bytes that took, SNAPSHOT_MAX_NOTE_BYTES at most; 0:
	// nothing. It may use the rest of them meanwhile. Async-signal-safe.
	size_t (*read)(const void *process, int tid, const struct snapshot *snapshot, void *note,
	               size_t room);
	// Puts the language's frames in their places in the stack that was just walked. Returns
	// false only where an `update` will know more of the thread: it is looked at again then,
	// asleep or not. Where it put in frames, stack->sps is NULL, so that no other language
	// merges into this stack.
	bool (*merge)(void *process, int tid, const struct snapshot *snapshot,
	              const struct snapshot_note *note, struct unwound *stack);

	// --- Its units that are not threads (language_tasks.h). NULL: threads alone are sampled.
	const struct language_tasks *tasks;
};

// All of them; NULL: no language has that place. Their positions are those of their notes and of
// what is kept of them. Defined in src/languages.
extern const struct language *const languages[LANGUAGES_MAX];

// Returns the language's position in the table.
size_t language_position(const struct language *language);

// What follows is for the core.

// Has each language look in the file (look_in_file). Call it in guarded work.
void languages_look_in_file(struct module *module);

// Lets each language claim the process by a module that was looked in.
void languages_claim(struct address_space *space, struct module *module, uint64_t bias);

// Destroys what `claim` has made of the process.
void languages_drop_claims(struct address_space *space);

// Destroys all that languages keep of a process.
void languages_forget(void *processes[LANGUAGES_MAX]);

// Makes the rule by the first language that has one. False if none has.
bool languages_rule(const struct language_code *code, bool before_tables, struct rule *ret);

// As the functions of struct language, by the first one that knows.
bool languages_refine(const struct language_code *code, const struct rule *row, struct rule *ret);
uint64_t languages_find_start(const struct arch_code *code, uint64_t address);
bool languages_rule_at_jump(const struct arch_code *code, uint64_t end, bool keeps_fp,
                            struct rule *ret);

// Returns the most that any language lacks of the thread.
enum language_lack languages_lack(int tid, struct snapshot_hint *hint,
                                  const struct snapshot *snapshot);

// Has languages ask and copy what they need of the thread.
void languages_ask(struct snapshot_copy *copy);
void languages_copy(struct snapshot_copy *copy);

// Has languages note what the unwinder's last walk has shown of the thread whose hint it is.
void languages_learn(struct unwinder *unwinder, int tid, struct snapshot_hint *hint,
                     const struct unwound *stack);

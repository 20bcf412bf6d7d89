// SPDX-License-Identifier: MIT
// address_space: finds which module a code address of the target belongs to, and keeps that up to
// date cheaply.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "code_watch.h"
#include "language.h"
#include "maps.h"

struct module;
struct modules;

struct address_space {
	struct modules *modules; // borrowed
	int pid;
	int tid;                   // a thread that lived at the last update
	int stat_fd;               // of a thread, while it lives; -1: none
	struct resident *resident; // tells which pages are in memory; borrowed; NULL: nobody
	struct maps maps;
	struct module **owners; // the module of each mapping of maps; NULL: not asked for yet
	size_t owners_capacity;
	struct code_watch watch;      // watches code that was seen
	uint32_t generation;          // changes when executable mappings change
	uint64_t code_hash;           // hash of the executable mappings
	bool is_foreign;              // a program for another processor mode
	uint64_t vsize_bytes;         // when the maps were read
	uint64_t start_code;          // of the program, as proc.h has it
	uint64_t start_stack;         // SP at the entry point, of the program that runs now
	int64_t read_ns;              // when the maps were read
	int64_t known_ns;             // when they were last read, or known not to have changed
	int64_t cost_ns;              // how long that took
	struct module *jit_module;    // for code that no file holds; NULL: none was seen yet
	uint32_t jit_code_generation; // changes when what is known of that code changes
	int64_t jit_code_ns;          // when that code was last taken to have changed
	struct gdb_jit *jit;     // what the process tells debuggers about it; NULL: none was seen
	uint32_t jit_generation; // the generation for which its descriptors were looked for
	void *languages[LANGUAGES_MAX]; // what each keeps of the process; NULL: it is not there
	bool searched;                  // all files were searched
	int64_t searched_ns, search_cost_ns; // when that was, and how long it took
	bool stale;                          // an address outside of all mappings was seen since
	bool unsure;           // something was seen since that a reading may explain, or change
	int64_t updated_ns;    // when all of this was last looked at
	int64_t look_again_ns; // when a file that was gone is looked for again
	size_t n_found;        // how many that were gone have been found, as modules counts them
	uint64_t n_reads;
};

// An address within its module, as locations have it.
struct code_address {
	struct module *module;
	uint64_t address;
	uint32_t code;                     // struct location's
	const struct address_space *space; // whose memory holds code that no file does
};

// Begins with the empty address space of process `pid`; modules is borrowed.
void address_space_init(struct address_space *space, struct modules *modules, int pid);
void address_space_deinit(struct address_space *space);

// Makes the update at that time look for files that were gone, if none does before.
static inline void address_space_look_at(struct address_space *space, int64_t at_ns)
{
	if (at_ns < space->look_again_ns)
		space->look_again_ns = at_ns;
}

// Reads the maps again through the live thread `tid` if something says that they may have changed,
// or if it is not known that they have not. Waits between two readings so that they take less than
// about 2 % of the time, except with `force`. Looks again for files that were gone.
void address_space_update(struct address_space *space, int tid, int64_t now_ns, bool force);

// Marks the maps as stale if the process has begun another program since they were read: they may
// have been read in the middle of an exec, when the start of its stack was not final yet.
void address_space_note_exec(struct address_space *space, int tid);

// Returns the module of the address, and the address in it. An address in no executable mapping
// belongs to "[unknown]", and marks the maps as stale.
struct code_address address_space_resolve(struct address_space *space, uint64_t pc);

// Returns the ELF image of its JIT code that the process keeps for debuggers, as a module with the
// same addresses; NULL: none. It is copied from the process once.
struct module *address_space_find_image(const struct address_space *space, uint64_t pc);

// Reads up to `size` bytes of code at an address from the target's memory; returns how many it
// read. For code that no file holds.
size_t address_space_read_code(const struct address_space *space, uint64_t pc, void *buffer,
                               size_t size);

// True if the address lies in executable memory.
bool address_space_is_code(const struct address_space *space, uint64_t pc);

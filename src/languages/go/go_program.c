// SPDX-License-Identifier: MIT
#include "go_program.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "go_guess.h"
#include "gopclntab.h"
#include "memory.h"
#include "module.h"
#include "resident.h"
#include "symbol_table.h"

enum {
	WORD = 8,
	MAX_SCAN_BYTES = 32 << 20, // of a stripped program's variables
	MAX_CANDIDATES = 4096,     // for its list of goroutines
	MAX_CHECKED = 64,          // of whose elements are looked at
	MAX_GOROUTINES = 1 << 24,
	MAX_STACK_BYTES = 1 << 30, // runtime.maxstacksize, of 64-bit programs
	MAX_STATUS = 11,
	SCAN_BIT = 0x1000, // of the status: the collector reads the stack
	MIN_POINTER = 0x1000,

	// debug/buildinfo: a mark, a pointer's size, flags; then, from byte 32 on, the version with
	// its length in front, or before Go 1.18 its address at byte 16.
	BUILD_INFO_FLAGS = 15,
	BUILD_INFO_INLINE = 2,
	BUILD_INFO_POINTER = 16,
	BUILD_INFO_STRING = 32,
};

bool go_memory_read(const struct go_memory *memory, uint64_t address, void *bytes, size_t size)
{
	return address >= MIN_POINTER &&
	       resident_read(memory->resident, memory->tid, address, bytes, size);
}

static uint64_t word_at(const uint8_t *bytes, size_t i)
{
	uint64_t word;

	memcpy(&word, bytes + i * WORD, sizeof(word));
	return word;
}

// What go_program_find hands to guarded work.
struct search {
	const struct go_memory *memory;
	struct go_program *program;
	uint64_t build_info, bss, data; // sections, addresses in the process; 0: there is none
	uint64_t length, pointer, list, reasons; // variables, likewise
	bool is_go, has_offsets;
};

static uint64_t section_at(const struct go_program *program, const char *name)
{
	uint64_t address;

	return module_find_section(program->module, name, &address) ? address + program->bias : 0;
}

static uint64_t variable_at(const struct go_program *program, const char *name)
{
	uint64_t address;

	return symbol_table_find_named(module_dwfl(program->module), name, STT_OBJECT, &address)
	           ? address + program->bias
	           : 0;
}

// The last of the runtime's FuncIDs (internal/abi/symtab.go) is that of wrappers, in all versions,
// and follows that of systemstack_switch.
static int find_wrapper(struct gopclntab *table)
{
	uint64_t address;

	return gopclntab_find_name(table, "runtime.systemstack_switch", 0, SIZE_MAX, &address)
	           ? gopclntab_special(table, address) + 1
	           : -1;
}

static void read_module(void *context)
{
	struct search *search = context;
	struct go_program *program = search->program;

	search->is_go = module_gopclntab(program->module) != NULL;
	if (!search->is_go)
		return;
	search->build_info = section_at(program, ".go.buildinfo");
	search->bss = section_at(program, ".bss");
	search->data = section_at(program, ".data");
	search->length = variable_at(program, "runtime.allglen");
	search->pointer = variable_at(program, "runtime.allgptr");
	search->list = variable_at(program, "runtime.allgs");
	search->reasons = variable_at(program, "runtime.waitReasonStrings");
	program->wrapper = find_wrapper(module_gopclntab(program->module));
}

static void read_debug_information(void *context)
{
	struct search *search = context;

	search->has_offsets =
	    go_offsets_of_module(search->program->module, &search->program->offsets);
}

// Reads what no program changes: what is not in memory, because nobody has used it yet, is in the
// file.
static bool read_constant(const struct search *search, uint64_t address, void *bytes, size_t size)
{
	const struct go_program *program = search->program;

	return go_memory_read(search->memory, address, bytes, size) ||
	       module_read_code(program->module, address - program->bias, bytes, size) == size;
}

static bool read_string(const struct search *search, uint64_t header, char *ret, size_t size)
{
	uint64_t words[2]; // address, length

	memset(ret, 0, size);
	return read_constant(search, header, words, sizeof(words)) && words[1] > 0 &&
	       words[1] < size && read_constant(search, words[0], ret, words[1]);
}

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

// "go1.26.8", or what a development version says.
static bool read_version(const struct search *search, char ret[GO_VERSION_BYTES])
{
	uint8_t bytes[BUILD_INFO_STRING + GO_VERSION_BYTES];

	if (!search->build_info ||
	    !go_memory_read(search->memory, search->build_info, bytes, sizeof(bytes)) ||
	    memcmp(bytes, "\xff Go buildinf:", 14) != 0)
		return false;
	if (!(bytes[BUILD_INFO_FLAGS] & BUILD_INFO_INLINE)) {
		const uint64_t header = word_at(bytes, BUILD_INFO_POINTER / WORD);
		return read_string(search, header, ret, GO_VERSION_BYTES) && is_printable(ret);
	}
	const size_t length = bytes[BUILD_INFO_STRING];
	memset(ret, 0, GO_VERSION_BYTES);
	memcpy(ret, bytes + BUILD_INFO_STRING + 1,
	       length < GO_VERSION_BYTES ? length : GO_VERSION_BYTES - 1);
	return is_printable(ret);
}

static int minor_of(const char *version)
{
	const char *at = strstr(version, "go1.");
	char *end;
	const long minor = at ? strtol(at + 4, &end, 10) : -1;

	return at && end > at + 4 && minor >= 0 && minor < 1000 ? (int)minor : -1;
}

bool go_program_is_g(const struct go_program *program, const uint8_t *bytes, uint64_t address)
{
	const struct go_offsets *offsets = &program->offsets;
	const uint64_t low = go_word(bytes, offsets->low), high = go_word(bytes, offsets->high);
	const uint32_t status = (uint32_t)go_word(bytes, offsets->status) & ~(uint32_t)SCAN_BIT;

	if (status > MAX_STATUS || go_word(bytes, offsets->goid) >> 56)
		return false;
	if (low == 0 && high == 0)
		return true; // its stack was given back
	// sched.g, behind sched.pc, is the structure's own address from the first use on.
	return low < high && high - low <= MAX_STACK_BYTES && low % WORD == 0 &&
	       go_word(bytes, offsets->pc + WORD) == address;
}

// True if the list's first elements are goroutines, and one of them has an id.
static bool is_list(const struct go_program *program, const struct go_memory *memory,
                    uint64_t pointer, uint64_t length)
{
	const size_t n = length < MAX_CHECKED ? length : MAX_CHECKED;
	uint64_t elements[MAX_CHECKED];
	bool has_id = false;

	_cleanup_free_ uint8_t *bytes = memory_alloc_zeroed(1, program->g_bytes);
	if (n == 0 || pointer % WORD != 0 ||
	    !go_memory_read(memory, pointer, elements, n * sizeof(*elements)))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (elements[i] % WORD != 0 ||
		    !go_memory_read(memory, elements[i], bytes, program->g_bytes) ||
		    !go_program_is_g(program, bytes, elements[i]))
			return false;
		has_id |= go_word(bytes, program->offsets.goid) != 0;
	}
	return has_id;
}

// The variables from that section on, as far as they lie together; owned by the caller.
static uint8_t *read_variables(struct address_space *space, const struct go_memory *memory,
                               uint64_t start, size_t *ret_words)
{
	const struct mapping *mapping = start ? maps_find(&space->maps, start) : NULL;
	struct resident_gaps gaps;
	uint64_t end = start;

	*ret_words = 0;
	for (; mapping && mapping->start <= end && end - start < MAX_SCAN_BYTES;
	     mapping = maps_find(&space->maps, end))
		end = mapping->end;
	if (end - start > MAX_SCAN_BYTES)
		end = start + MAX_SCAN_BYTES;
	uint8_t *bytes = memory_alloc_zeroed(1, end - start + WORD);
	*ret_words =
	    resident_copy(memory->resident, memory->tid, start, bytes, end - start, &gaps) / WORD;
	return bytes;
}

// What may be a slice's address, and how often it stands among the variables.
struct candidate {
	uint64_t pointer;
	size_t count;
};

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return (x->pointer > y->pointer) - (x->pointer < y->pointer);
}

static struct candidate *find_candidate(struct candidate *candidates, size_t n, uint64_t pointer)
{
	const struct candidate key = {.pointer = pointer};

	return n ? bsearch(&key, candidates, n, sizeof(key), compare_candidates) : NULL;
}

// True if a slice of goroutines may begin at the i-th word: address, length, capacity.
static bool may_be_list(const uint8_t *words, size_t i)
{
	const uint64_t pointer = word_at(words, i), length = word_at(words, i + 1);
	const uint64_t capacity = word_at(words, i + 2);

	return pointer >= MIN_POINTER && pointer % WORD == 0 && length != 0 && length <= capacity &&
	       capacity <= MAX_GOROUTINES;
}

// Counts the addresses of the first slices, all in one pass: there may be megabytes of variables.
// Returns how many there are, sorted; *ret_end: after the last slice that was taken.
static size_t count_candidates(const uint8_t *words, size_t n, struct candidate *ret,
                               size_t *ret_end)
{
	size_t count = 0, kept = 0, i = 0;

	for (; i + 2 < n && count < MAX_CANDIDATES; i++)
		if (may_be_list(words, i))
			ret[count++] = (struct candidate){.pointer = word_at(words, i)};
	*ret_end = i;
	if (count > 0)
		qsort(ret, count, sizeof(*ret), compare_candidates);
	for (i = 0; i < count; i++)
		if (kept == 0 || ret[kept - 1].pointer != ret[i].pointer)
			ret[kept++] = ret[i];
	for (i = 0; i < n && kept > 0; i++) {
		const uint64_t word = word_at(words, i);
		struct candidate *found = word >= ret[0].pointer && word <= ret[kept - 1].pointer
		                              ? find_candidate(ret, kept, word)
		                              : NULL;
		if (found)
			found->count++;
	}
	return kept;
}

// runtime.allgs in a program without symbols: a slice (address, length, capacity) of goroutines,
// whose address stands in runtime.allgptr, too.
static bool scan_for_list(struct address_space *space, struct search *search)
{
	size_t n, end;
	_cleanup_free_ uint8_t *words = read_variables(space, search->memory, search->bss, &n);
	_cleanup_free_ struct candidate *candidates =
	    memory_alloc_zeroed(MAX_CANDIDATES, sizeof(*candidates));
	const size_t n_candidates = count_candidates(words, n, candidates, &end);

	for (size_t i = 0; i < end; i++) {
		const uint64_t pointer = word_at(words, i);
		const struct candidate *found =
		    may_be_list(words, i) ? find_candidate(candidates, n_candidates, pointer)
		                          : NULL;
		if (!found || found->count < 2 ||
		    !is_list(search->program, search->memory, pointer, word_at(words, i + 1)))
			continue;
		search->program->list_pointer = search->bss + i * WORD;
		search->program->list_length = search->bss + (i + 1) * WORD;
		return true;
	}
	return false;
}

// runtime.waitReasonStrings in a program without symbols: the second is "GC assist marking", the
// third "IO wait", in all versions.
static uint64_t scan_for_reasons(struct address_space *space, const struct search *search)
{
	size_t n, n_left = MAX_CANDIDATES;
	char text[GO_REASON_BYTES];
	_cleanup_free_ uint8_t *words = read_variables(space, search->memory, search->data, &n);

	for (size_t i = 2; i + 3 < n && n_left > 0; i++) {
		const uint64_t at = search->data + i * WORD;
		if (word_at(words, i + 1) != strlen("GC assist marking") ||
		    word_at(words, i + 3) != strlen("IO wait"))
			continue;
		n_left--;
		if (read_string(search, at, text, sizeof(text)) &&
		    strcmp(text, "GC assist marking") == 0 &&
		    read_string(search, at + 2 * WORD, text, sizeof(text)) &&
		    strcmp(text, "IO wait") == 0)
			return at - 2 * WORD;
	}
	return 0;
}

static void read_reasons(const struct search *search, uint64_t at)
{
	struct go_program *program = search->program;

	program->reasons = memory_alloc_zeroed(GO_MAX_REASONS, sizeof(*program->reasons));
	for (size_t i = 1; at && i < GO_MAX_REASONS; i++) {
		char *text = program->reasons[i];
		if (read_string(search, at + i * 2 * WORD, text, GO_REASON_BYTES) &&
		    is_printable(text))
			continue;
		text[0] = '\0';
		return; // the end of the array
	}
}

static bool find_list(struct address_space *space, struct search *search)
{
	struct go_program *program = search->program;
	uint64_t pointer, length;

	program->list_length = search->length ? search->length : search->list + WORD;
	program->list_pointer = search->pointer ? search->pointer : search->list;
	if (!search->list && (!search->length || !search->pointer))
		return scan_for_list(space, search);
	return go_memory_read(search->memory, program->list_length, &length, sizeof(length)) &&
	       go_memory_read(search->memory, program->list_pointer, &pointer, sizeof(pointer)) &&
	       is_list(program, search->memory, pointer, length);
}

static bool list_fits(struct address_space *space, struct search *search)
{
	search->program->g_bytes = go_offsets_g_bytes(&search->program->offsets);
	return find_list(space, search);
}

// The offsets that fit the list: those of the version, else those of the debug information.
static bool find_offsets(struct address_space *space, struct search *search)
{
	struct go_program *program = search->program;

	if (go_offsets_of_version(program->minor, &program->offsets) && list_fits(space, search))
		return true;
	return module_guard(program->module, read_debug_information, search, MODULE_FOR_NAMES) &&
	       search->has_offsets && list_fits(space, search);
}

static void find_reasons(struct address_space *space, const struct search *search)
{
	read_reasons(search, search->reasons ? search->reasons : scan_for_reasons(space, search));
}

// Tries the offsets of the newest known version on one that is newer, or is not told.
static bool guess_offsets(struct address_space *space, struct search *search)
{
	struct go_program *program = search->program;
	const int newest = go_offsets_newest(&program->offsets);

	if (program->minor >= 0 && program->minor <= newest)
		return false;
	program->guessed_minor = newest;
	go_guess_reduce(&program->offsets);
	if (!list_fits(space, search))
		return false;
	find_reasons(space, search);
	return go_guess_fits(program, search->memory);
}

static const char *why_refused(const struct search *search)
{
	struct go_offsets offsets;

	return search->has_offsets || go_offsets_of_version(search->program->minor, &offsets)
	           ? "its list of goroutines was not found"
	           : "its version is not known";
}

// A module that may hold Go.
static bool find_in(struct address_space *space, struct search *search)
{
	struct go_program *program = search->program;

	if (!module_guard(program->module, read_module, search, MODULE_FOR_RULES) || !search->is_go)
		return false;
	if (!read_version(search, program->version))
		snprintf(program->version, sizeof(program->version), "an unknown version");
	program->minor = minor_of(program->version);
	if (find_offsets(space, search))
		find_reasons(space, search);
	else if (!guess_offsets(space, search))
		program->refused = why_refused(search);
	return true;
}

// True for files that may hold Go: the main executable, and those of whose code a stack has shown
// that. Others are not opened for that.
static bool may_hold_go(const struct address_space *space, size_t i)
{
	const struct mapping *mapping = &space->maps.items[i];
	const bool is_main =
	    space->start_code >= mapping->start && space->start_code < mapping->end;

	return mapping->executable && mapping->inode != 0 &&
	       (is_main || (space->owners[i] && space->owners[i]->gopclntab));
}

// Takes what was found in a file: the first runtime whose goroutines can be read is the one.
static void take(struct go_program *best, struct go_program *found)
{
	if (!best->module || (best->refused && !found->refused)) {
		go_program_deinit(best);
		*best = *found;
		return;
	}
	// A plugin has Go's code, and uses the program's runtime: it has no list.
	if (!found->refused && best->n_others++ == 0)
		best->other = found->module;
	go_program_deinit(found);
}

bool go_program_find(struct address_space *space, const struct go_memory *memory,
                     struct go_program *ret)
{
	const struct module *last = NULL;
	struct go_program best = {0};

	for (size_t i = 0; i < space->maps.count; i++) {
		if (!may_hold_go(space, i))
			continue;
		const uint64_t start = space->maps.items[i].start;
		const struct code_address code = address_space_resolve(space, start);
		if (code.module == last || code.module == best.module ||
		    code.module->kind != MODULE_FILE)
			continue;
		last = code.module;
		struct go_program program = {.module = code.module, .bias = start - code.address};
		struct search search = {.memory = memory, .program = &program};
		if (find_in(space, &search))
			take(&best, &program);
	}
	if (best.module)
		*ret = best;
	return best.module != NULL;
}

size_t go_program_count_files(const struct address_space *space)
{
	size_t n = 0;

	for (size_t i = 0; i < space->maps.count; i++)
		n += may_hold_go(space, i);
	return n;
}

void go_program_deinit(struct go_program *program)
{
	free(program->reasons);
	*program = (struct go_program){0};
}

struct name_search {
	const struct go_program *program;
	uint64_t address, entry;
	const char *name;
};

static void find_name(void *context)
{
	struct name_search *search = context;
	struct gopclntab *table = module_gopclntab(search->program->module);

	search->name = table ? gopclntab_name(table, search->address) : NULL;
	if (search->name && !gopclntab_entry(table, search->address, &search->entry))
		search->name = NULL;
}

struct special_search {
	const struct go_program *program;
	uint64_t address;
	int special;
};

static void find_special(void *context)
{
	struct special_search *search = context;
	struct gopclntab *table = module_gopclntab(search->program->module);

	search->special = table ? gopclntab_special(table, search->address) : -1;
}

bool go_program_is_wrapper(const struct go_program *program, uint64_t pc)
{
	struct special_search search = {program, pc - program->bias, -1};

	return program->wrapper >= 0 &&
	       module_guard(program->module, find_special, &search, MODULE_FOR_NAMES) &&
	       search.special == program->wrapper;
}

const char *go_program_function(const struct go_program *program, uint64_t pc, uint64_t *ret_entry)
{
	struct name_search search = {.program = program, .address = pc - program->bias};

	if (!module_guard(program->module, find_name, &search, MODULE_FOR_NAMES) || !search.name)
		return NULL;
	if (ret_entry)
		*ret_entry = search.entry + program->bias;
	return search.name;
}

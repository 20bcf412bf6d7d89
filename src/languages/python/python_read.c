// SPDX-License-Identifier: MIT
#include <string.h>

#include "memory.h"
#include "python.h"
#include "python_pieces.h"
#include "runtimes.h"
#include "snapshot.h"

enum {
	SCRATCH_BYTES = 1 << 20,  // at the end of a note's room
	MAX_PLAN_BYTES = 1 << 19, // of it
	MORE_STACK_BYTES = 256,   // of the data stack, that are read beyond its end last time
	PAGE_BYTES = 4096,
	MAX_WINDOWS = 96,
	MAX_CHUNKS = 64, // of a thread's data stack
	MAX_CHUNK_BYTES = 1 << 19,
	MAX_READS = 2048,      // of single frames
	MAX_ROOT_BYTES = 4096, // of the oldest chunk, where the outermost frames are
	MAX_CFRAMES = 8192,
	MAX_CFRAME_READS = 256, // of single ones, beyond the copied stack
	MAX_STATES = 32,        // of a thread; those of new threads come last, which have no frames
	N_BUCKETS = 2 * PYTHON_MAX_CODES,
	TAG_BITS = 3, // of a pointer to a code object
	OWNED_BY_GENERATOR = 1,
};

struct window {
	uint64_t start, size;
	const uint8_t *bytes;
};

// Reading one thread's note.
struct walk {
	const struct python *python;
	int tid;
	const struct snapshot *snapshot;
	struct python_note *note;
	struct python_frame *frames;
	size_t max_frames;
	struct python_cframe *cframes; // in the scratch
	uint8_t *scratch;
	size_t scratch_used;
	struct window windows[MAX_WINDOWS];
	size_t n_windows, n_reads;
	struct python_pieces pieces;
	uint64_t unused, unused_end; // of the newest chunk of the data stack
	uint16_t *buckets;           // for look_at_codes; in the scratch
	bool is_cut;                 // the chain that is being read has more frames
};

static void *take_scratch(struct walk *walk, size_t size)
{
	void *bytes = walk->scratch + walk->scratch_used;

	size = (size + 15) & ~(size_t)15;
	if (size > SCRATCH_BYTES - walk->scratch_used)
		return NULL;
	walk->scratch_used += size;
	return bytes;
}

// What the thread's last sample asked for.
static void read_plan(struct walk *walk, const struct python_plan *plan)
{
	walk->scratch_used += python_pieces_read_plan(
	    &walk->pieces, plan, walk->scratch + walk->scratch_used, MAX_PLAN_BYTES);
	walk->scratch_used = (walk->scratch_used + 15) & ~(size_t)15;
}

static const uint8_t *add_window(struct walk *walk, uint64_t start, size_t size)
{
	struct python_pieces *pieces = &walk->pieces;
	const uint8_t *bytes = python_pieces_find(pieces, start, size);

	if (walk->n_windows == MAX_WINDOWS)
		return NULL;
	if (!bytes) {
		uint8_t *room = take_scratch(walk, size);
		if (!room || !python_pieces_read(pieces, start, room, size))
			return NULL;
		bytes = room;
	}
	walk->windows[walk->n_windows++] = (struct window){start, size, bytes};
	return bytes;
}

// The data stack will end elsewhere: up to the end of the page all is read next time.
static void note_newest_chunk(struct walk *walk, uint64_t chunk, uint64_t top, uint64_t chunk_end)
{
	const uint64_t page_end = (top + MORE_STACK_BYTES) / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES;
	const uint64_t end = page_end < chunk_end ? page_end : chunk_end;

	walk->unused = top;
	walk->unused_end = chunk_end;
	if (end > top)
		python_pieces_note(&walk->pieces, chunk, end - chunk);
}

// The used parts of the thread's data stack, where the frames of ordinary functions are. A chunk
// begins with its predecessor, its size, and how many words of it were used when it was left
// (Include/internal/pycore_pystate.h).
static void read_data_stack(struct walk *walk, uint64_t chunk, uint64_t top)
{
	enum { HEADER_BYTES = 24, PREVIOUS = 0, CHUNK_SIZE = 8, TOP = 16 };
	uint64_t size = top - chunk;

	for (size_t i = 0; chunk && i < MAX_CHUNKS; i++) {
		uint8_t header[HEADER_BYTES];
		if (size < HEADER_BYTES || size > MAX_CHUNK_BYTES)
			return;
		const uint8_t *bytes = add_window(walk, chunk, size);
		if (!bytes)
			return;
		if (i == 0)
			note_newest_chunk(walk, chunk, top,
			                  chunk + python_word_at(bytes, CHUNK_SIZE));
		chunk = python_word_at(bytes, PREVIOUS);
		if (!chunk || !python_pieces_read(&walk->pieces, chunk, header, sizeof(header)))
			return;
		const uint64_t words = python_word_at(header, TOP);
		size = words < MAX_CHUNK_BYTES ? HEADER_BYTES + words * 8 : 0;
	}
}

static const uint8_t *find_copied(const struct walk *walk, uint64_t address, size_t size)
{
	for (size_t i = 0; i < walk->n_windows; i++) {
		const struct window *window = &walk->windows[i];
		const uint64_t at = address - window->start;
		if (at < window->size && window->size - at >= size)
			return window->bytes + at;
	}
	for (size_t i = 0; i < walk->snapshot->n_regions; i++) {
		const struct snapshot_region *region = &walk->snapshot->regions[i];
		const uint64_t at = address - region->start;
		if (at < region->size && region->size - at >= size &&
		    !resident_has_gap(&region->gaps, at, size))
			return region->bytes + at;
	}
	return NULL;
}

// `size` bytes at the address, copied or read now into `buffer`; NULL: they cannot be.
static const uint8_t *bytes_at(struct walk *walk, uint64_t address, uint8_t *buffer, size_t size)
{
	const uint8_t *copied = find_copied(walk, address, size);

	if (copied)
		return copied;
	const uint8_t *planned = python_pieces_find(&walk->pieces, address, size);
	if (planned)
		return planned;
	if (walk->n_reads++ >= MAX_READS ||
	    !python_pieces_read(&walk->pieces, address, buffer, size))
		return NULL;
	return buffer;
}

static void note_unreadable(struct walk *walk)
{
	if (walk->note->fault == RUNTIME_FAULT_NONE)
		walk->note->fault = RUNTIME_FAULT_UNREADABLE;
}

static void decode_frame(const struct python_layout *layout, const uint8_t *bytes,
                         struct python_frame *ret)
{
	ret->code = python_word_at(bytes, layout->frame_code) & ~(uint64_t)TAG_BITS;
	ret->code_index = PYTHON_MAX_CODES;
	if (layout->minor <= 10) { // the index of an instruction; in units of two bytes in 3.10
		int32_t index;
		memcpy(&index, bytes + layout->frame_instr, sizeof(index));
		ret->instr = (uint64_t)(int64_t)index * (layout->minor == 10 ? 2 : 1);
		ret->is_generator =
		    layout->frame_generator && python_word_at(bytes, layout->frame_generator);
		return;
	}
	ret->instr = python_word_at(bytes, layout->frame_instr);
	ret->is_entry = layout->frame_entry && bytes[layout->frame_entry];
	ret->is_shim = bytes[layout->frame_owner] >= layout->shim_owner;
	ret->is_generator = bytes[layout->frame_owner] == OWNED_BY_GENERATOR;
	if (layout->frame_tlbc)
		memcpy(&ret->tlbc, bytes + layout->frame_tlbc, sizeof(ret->tlbc));
}

// Nuitka's functions are C, and have no instructions: they set the line in their frame's object.
static uint32_t find_line(struct walk *walk, const struct python_frame *frame, const uint8_t *bytes)
{
	const struct python_layout *layout = &walk->python->layout;
	int32_t line = 0;

	if (!layout->frame_object || frame->is_shim ||
	    frame->instr > frame->code + layout->code_start)
		return 0;
	const uint64_t object = python_word_at(bytes, layout->frame_object);
	if (!object || walk->n_reads++ >= MAX_READS ||
	    !python_pieces_read(&walk->pieces, object + layout->object_line, &line, sizeof(line)))
		return 0;
	return line > 0 ? (uint32_t)line : 0;
}

static void add_frame(struct walk *walk, uint64_t address, const uint8_t *bytes)
{
	struct python_frame *frame = &walk->frames[walk->note->n_frames++];

	*frame = (struct python_frame){.address = address};
	decode_frame(&walk->python->layout, bytes, frame);
	frame->line = find_line(walk, frame, bytes);
}

// Goes on from that frame to its callers, until the note is full, or too much would be read while
// the thread is held.
static void walk_frames(struct walk *walk, uint64_t address)
{
	const struct python_layout *layout = &walk->python->layout;
	uint8_t buffer[PYTHON_MAX_FRAME_BYTES];

	while (address) {
		if (walk->note->n_frames >= walk->max_frames) {
			walk->is_cut = true;
			return;
		}
		const uint8_t *bytes = bytes_at(walk, address, buffer, layout->frame_bytes);
		// A call of the loop that is about to begin says which frame was the last one's of
		// another call that was there before it: one that has been taken off.
		if (!bytes && walk->n_reads > MAX_READS) {
			walk->is_cut = true;
			return;
		}
		if (!bytes || (address >= walk->unused && address < walk->unused_end)) {
			note_unreadable(walk);
			return;
		}
		add_frame(walk, address, bytes);
		address = python_word_at(bytes, layout->frame_previous);
	}
}

// Finds the outermost frames of a chain that is cut: the first one is at a known place, and each
// further one has the address of the one before it. Puts them in the order of the others.
static void read_outermost(struct walk *walk, uint64_t root, struct python_chain *chain)
{
	const struct python_layout *layout = &walk->python->layout;
	uint8_t bytes[MAX_ROOT_BYTES];
	uint32_t found[PYTHON_MAX_OUTER], n = 0;

	if (!root || !python_pieces_read(&walk->pieces, root, bytes, sizeof(bytes)))
		return;
	found[n++] = PYTHON_FIRST_FRAME;
	for (uint32_t at = PYTHON_FIRST_FRAME + 8;
	     n < PYTHON_MAX_OUTER && at + layout->frame_bytes <= sizeof(bytes); at += 8)
		if (python_word_at(bytes, at + layout->frame_previous) == root + found[n - 1])
			found[n++] = at;
	for (; n > 0; n--, chain->n_outer++)
		add_frame(walk, root + found[n - 1], bytes + found[n - 1]);
}

// 3.10 to 3.12: each call of the interpreter's loop has a _PyCFrame on the machine's stack. Returns
// the innermost Python frame, where they tell.
static uint64_t walk_cframes(struct walk *walk, uint64_t cframe, uint64_t root)
{
	const struct python_layout *layout = &walk->python->layout;
	uint64_t frame = 0;
	uint8_t buffer[24];

	for (bool is_first = true; cframe; is_first = false) {
		if (walk->note->n_cframes == MAX_CFRAMES || walk->n_reads > MAX_CFRAME_READS)
			return frame; // those of the frames that are read are known, or most of
			              // them
		const uint8_t *bytes = bytes_at(walk, cframe, buffer, sizeof(buffer));
		if (!bytes) {
			note_unreadable(walk);
			return frame;
		}
		if (is_first)
			frame = python_word_at(bytes, layout->cframe_frame);
		if (cframe == root)
			return frame;
		walk->cframes[walk->note->n_cframes++] = (struct python_cframe){
		    cframe, layout->cframe_frame ? python_word_at(bytes, layout->cframe_frame) : 0};
		cframe = python_word_at(bytes, layout->cframe_previous);
	}
	return frame;
}

// The thread's state, and beside it who holds the GIL and what it is used for. False: it cannot be
// read, is no more, or is another thread's.
static bool read_state(struct walk *walk, const struct python_thread *thread, uint8_t *ret)
{
	const struct python *python = walk->python;
	const struct python_layout *layout = &python->layout;
	uint64_t holder = 0, task = 0;
	int32_t locked = python->current != 0, collecting = 0;
	const uint64_t holder_at =
	    python->current ? python->current : thread->gil + layout->gil_holder;
	const bool has_gil = python->current || thread->gil;
	struct resident_block blocks[] = {
	    {thread->state, ret, layout->thread_bytes, false},
	    {holder_at, &holder, has_gil ? sizeof(holder) : 0, false},
	    {thread->gil + layout->gil_locked, &locked, thread->gil ? sizeof(locked) : 0, false},
	    {thread->interp + layout->interp_collecting, &collecting,
	     layout->interp_collecting ? sizeof(collecting) : 0, false},
	    {thread->state + python->tasks.running, &task, python->tasks.running ? sizeof(task) : 0,
	     false},
	};

	python_pieces_read_blocks(&walk->pieces, blocks, array_size(blocks));
	if (!blocks[0].is_read)
		note_unreadable(walk);
	if (!blocks[0].is_read || python_word_at(ret, layout->thread_interp) != thread->interp)
		return false;
	if (python_threads_id(python, ret) != thread->thread_id) {
		walk->note->has_others = true;
		return false;
	}
	walk->note->has_state = true;
	if (locked == 1 && holder == thread->state) {
		walk->note->holds_gil = true;
		walk->note->collects |= collecting == 1;
	}
	if (task)
		python_tasks_read(python, &walk->pieces, task, walk->note);
	return true;
}

static void walk_chain(struct walk *walk, const struct python_thread *thread)
{
	const struct python_layout *layout = &walk->python->layout;
	struct python_note *note = walk->note;
	struct python_chain *chain = &note->chains[note->n_chains];
	uint8_t state[PYTHON_MAX_THREAD_BYTES];

	if (!read_state(walk, thread, state))
		return;
	walk->unused = walk->unused_end = 0;
	walk->is_cut = false;
	if (layout->thread_chunk) {
		const uint64_t chunk = python_word_at(state, layout->thread_chunk);
		read_data_stack(walk, chunk, python_word_at(state, layout->thread_chunk + 8));
	}
	*chain = (struct python_chain){.interp_id = thread->interp_id,
	                               .first_frame = note->n_frames,
	                               .first_cframe = note->n_cframes};
	uint64_t frame = layout->thread_frame ? python_word_at(state, layout->thread_frame) : 0;
	if (layout->thread_cframe) {
		const uint64_t innermost =
		    walk_cframes(walk, python_word_at(state, layout->thread_cframe),
		                 thread->state + layout->thread_root_cframe);
		frame = layout->thread_frame ? frame : innermost;
	}
	walk_frames(walk, frame);
	chain->n_frames = note->n_frames - chain->first_frame;
	chain->n_cframes = note->n_cframes - chain->first_cframe;
	chain->is_cut = walk->is_cut;
	if (chain->is_cut)
		read_outermost(walk, thread->root, chain);
	note->n_chains += chain->n_frames + chain->n_cframes > 0;
}

// The frames' code objects, each once.
static void look_at_codes(struct walk *walk, struct python_code_seen *codes)
{
	struct python_note *note = walk->note;
	uint16_t *buckets = walk->buckets; // index + 1; 0: empty

	memset(buckets, 0, N_BUCKETS * sizeof(*buckets));
	for (size_t i = 0; i < note->n_frames; i++) {
		struct python_frame *frame = &walk->frames[i];
		size_t at = (frame->code >> 4) * 0x9e3779b97f4a7c15u >> 40 & (N_BUCKETS - 1);
		if (frame->is_shim)
			continue;
		while (buckets[at] && codes[buckets[at] - 1].address != frame->code)
			at = (at + 1) & (N_BUCKETS - 1);
		if (!buckets[at]) {
			if (note->n_codes == PYTHON_MAX_CODES)
				continue;
			codes[note->n_codes] = (struct python_code_seen){.address = frame->code};
			buckets[at] = ++note->n_codes;
		}
		frame->code_index = buckets[at] - 1;
	}
	python_codes_look(walk->python, &walk->pieces, codes, note->n_codes);
}

static uint8_t *scratch_of(void *note, size_t room)
{
	return (uint8_t *)note + room - SCRATCH_BYTES;
}

void python_look_ahead(const void *context, int tid, void *note, size_t room)
{
	const struct python *python = context;
	size_t n_states;
	const struct python_thread *states = python_threads_find(python->threads, tid, &n_states);

	if (n_states > 0)
		python_pieces_look_ahead(python->setup->resident, tid, states[0].plan,
		                         note ? scratch_of(note, room) : NULL, MAX_PLAN_BYTES);
}

size_t python_read(const void *context, int tid, const struct snapshot *snapshot, void *bytes,
                   size_t room)
{
	const struct python *python = context;
	struct python_note *note = bytes;
	struct walk walk = {
	    .python = python,
	    .tid = tid,
	    .snapshot = snapshot,
	    .note = note,
	    .frames = (struct python_frame *)(note + 1),
	    .max_frames = PYTHON_MAX_FRAMES,
	    .scratch = scratch_of(bytes, room),
	    .pieces = {.resident = python->setup->resident, .tid = tid},
	};
	size_t n_states;

	*note = (struct python_note){.fault = RUNTIME_FAULT_NONE};
	const struct python_thread *states = python_threads_find(python->threads, tid, &n_states);
	if (n_states > 0) // first, so that it goes where python_look_ahead has put it
		read_plan(&walk, states[0].plan);
	walk.cframes = take_scratch(&walk, MAX_CFRAMES * sizeof(struct python_cframe));
	walk.buckets = take_scratch(&walk, N_BUCKETS * sizeof(*walk.buckets));
	walk.pieces.asked = take_scratch(&walk, PYTHON_MAX_PIECES * sizeof(struct python_piece));
	for (uint32_t i = 0; i < n_states && i < MAX_STATES && note->n_chains < PYTHON_MAX_CHAINS;
	     i++)
		walk_chain(&walk, &states[i]);
	struct python_thread newest;
	if (!note->has_state && python_threads_find_newest(python, tid, &newest))
		walk_chain(&walk, &newest);
	struct python_cframe *cframes = (struct python_cframe *)(walk.frames + note->n_frames);
	memcpy(cframes, walk.cframes, note->n_cframes * sizeof(*cframes));
	struct python_code_seen *codes = (struct python_code_seen *)(cframes + note->n_cframes);
	look_at_codes(&walk, codes);
	struct python_piece *asked = (struct python_piece *)(codes + note->n_codes);
	note->n_asked = walk.pieces.n_asked;
	memcpy(asked, walk.pieces.asked, note->n_asked * sizeof(*asked));
	return (size_t)((uint8_t *)(asked + note->n_asked) - (uint8_t *)bytes);
}

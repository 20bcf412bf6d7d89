// SPDX-License-Identifier: MIT
#include "python_guess.h"

#include <string.h>

#include "address_space.h"
#include "proc.h"
#include "python.h"
#include "resident.h"
#include "runtimes.h"

enum {
	WORD = 8,
	MAX_INTERPRETERS = 64,
	MAX_STATES = 64, // that are checked
	MAX_LOOKS = 16,  // at a thread that runs meanwhile
	MAX_FRAMES = 64,
	MAX_OWNER = 4, // of enum _frameowner
	TAG_BITS = 3,
	MAX_TID = 1 << 22, // PID_MAX_LIMIT
	MAX_INTERP_ID = 1 << 20,
	MAX_LINE = 1 << 24,
	MAX_INSTRUCTIONS = 1 << 24,
	MAX_LINES_BYTES = 1 << 24,
	MAX_NAME_BYTES = 256, // that are looked at
	MIN_CHUNK_BYTES = 4096,
	MAX_CHUNK_BYTES = 1 << 30,
	INSTRUCTION_BYTES = 2,
};

struct look {
	const struct python *python;
	int tid;
	uint64_t interp;
	uint64_t previous;  // state in its list; 0: none
	size_t n_whole;     // frames of which all parts were seen, in the thread that is looked at
	size_t n_fitting;   // threads that have such frames
	size_t n_checked;   // threads
	size_t n_outsiders; // threads that do not fit, in spite of many looks
};

static bool read_at(const struct look *look, uint64_t address, void *ret, size_t size)
{
	return resident_read(look->python->setup->resident, look->tid, address, ret, size);
}

static int32_t number_at(const uint8_t *bytes, uint32_t offset)
{
	int32_t number;

	memcpy(&number, bytes + offset, sizeof(number));
	return number;
}

// One of ASCII, as names and paths mostly are, ends with a zero where its length says.
struct text {
	bool is_ascii;
	size_t length;
	char bytes[MAX_NAME_BYTES];
};

static bool is_ascii(const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] <= 0)
			return false;
	return true;
}

static bool fits_string(const struct look *look, uint64_t address, struct text *ret)
{
	const struct python_layout *layout = &look->python->layout;
	uint8_t header[128 + WORD] = {0}; // what a wrong offset shows behind what is read
	char end;

	if (address % WORD || !read_at(look, address, header, layout->string_ascii) ||
	    python_word_at(header, layout->object_type) != look->python->string_type)
		return false;
	const unsigned int kind = python_codes_string_kind(
	    (uint32_t)number_at(header, layout->string_state), &ret->is_ascii);
	ret->length = python_word_at(header, layout->string_length);
	if (kind == 0 || ret->length > INT32_MAX || !ret->is_ascii)
		return kind != 0 && ret->length <= INT32_MAX;
	const uint64_t at = address + layout->string_ascii;
	const size_t n = ret->length < MAX_NAME_BYTES ? ret->length : MAX_NAME_BYTES;
	return kind == 1 && read_at(look, at, ret->bytes, n) && is_ascii(ret->bytes, n) &&
	       read_at(look, at + ret->length, &end, 1) && end == '\0';
}

// A table of lines is an object of bytes, of which each entry's first one has the highest bit.
static bool fits_lines(const struct look *look, uint64_t address)
{
	const struct python_layout *layout = &look->python->layout;
	uint8_t header[128 + WORD] = {0}, end;

	if (address % WORD || !read_at(look, address, header, layout->bytes_data + 1))
		return false;
	const uint64_t type = python_word_at(header, layout->object_type);
	const uint64_t size = python_word_at(header, layout->bytes_size);
	return type != look->python->string_type && type != look->python->code_type && size > 0 &&
	       size <= MAX_LINES_BYTES && header[layout->bytes_data] & 0x80 &&
	       read_at(look, address + layout->bytes_data + size, &end, 1) && end == 0;
}

// The name is the qualified one's last part.
static bool fits_names(const struct look *look, const uint8_t *code, bool *ret_told)
{
	const struct python_layout *layout = &look->python->layout;
	struct text file, name, qualname;

	if (!fits_string(look, python_word_at(code, layout->code_file), &file) ||
	    !fits_string(look, python_word_at(code, layout->code_name), &name) ||
	    !fits_string(look, python_word_at(code, layout->code_qualname), &qualname))
		return false;
	*ret_told =
	    file.is_ascii && name.is_ascii && qualname.is_ascii && name.length > 0 &&
	    file.length > 0 && qualname.length >= name.length &&
	    qualname.length <= MAX_NAME_BYTES &&
	    memcmp(qualname.bytes + qualname.length - name.length, name.bytes, name.length) == 0;
	return true;
}

// Where the frame's instructions are: the code's own, or the thread's copy (free-threaded).
static bool find_start(const struct look *look, const uint8_t *frame, uint64_t code,
                       const uint8_t *bytes, uint64_t *ret)
{
	const struct python_layout *layout = &look->python->layout;
	uint64_t n_copies;

	*ret = code + layout->code_start;
	if (!layout->code_tlbc)
		return true;
	const uint64_t table = python_word_at(bytes, layout->code_tlbc);
	const uint64_t i = (uint32_t)number_at(frame, layout->frame_tlbc);
	return read_at(look, table, &n_copies, sizeof(n_copies)) && i < n_copies &&
	       read_at(look, table + WORD + WORD * i, ret, sizeof(*ret)) &&
	       (i > 0 || *ret == code + layout->code_start);
}

// `is_innermost`: it may not have come to its first instruction that counts.
static bool fits_place(const struct look *look, const uint8_t *frame, uint64_t code,
                       const uint8_t *bytes, bool is_innermost)
{
	const struct python_layout *layout = &look->python->layout;
	const uint64_t n = python_word_at(bytes, layout->bytes_size);
	const int32_t traceable = number_at(bytes, layout->code_traceable);
	uint64_t start;

	if (n == 0 || n > MAX_INSTRUCTIONS || traceable < 0 || (uint64_t)traceable > n ||
	    !find_start(look, frame, code, bytes, &start))
		return false;
	const int64_t at = (int64_t)(python_word_at(frame, layout->frame_instr) - start);
	return at % INSTRUCTION_BYTES == 0 && at >= -INSTRUCTION_BYTES &&
	       at < (int64_t)n * INSTRUCTION_BYTES &&
	       (is_innermost || at >= (int64_t)traceable * INSTRUCTION_BYTES);
}

static bool fits_frame(struct look *look, const uint8_t *frame, bool is_innermost)
{
	const struct python_layout *layout = &look->python->layout;
	const uint8_t owner = frame[layout->frame_owner];
	const uint64_t code = python_word_at(frame, layout->frame_code) & ~(uint64_t)TAG_BITS;
	uint8_t bytes[PYTHON_MAX_CODE_BYTES];
	bool is_told = false;

	if (owner >= layout->shim_owner)
		return owner <= MAX_OWNER;
	if (code % WORD || !read_at(look, code, bytes, layout->code_bytes) ||
	    python_word_at(bytes, layout->object_type) != look->python->code_type)
		return false;
	const int32_t line = number_at(bytes, layout->code_first_line);
	if (line < 0 || line > MAX_LINE || !fits_names(look, bytes, &is_told) ||
	    !fits_lines(look, python_word_at(bytes, layout->code_lines)) ||
	    !fits_place(look, frame, code, bytes, is_innermost))
		return false;
	look->n_whole += is_told && line > 0;
	return true;
}

// The outermost frame is none of a function's: the interpreter's loop was entered there.
static bool fits_frames(struct look *look, uint64_t address)
{
	const struct python_layout *layout = &look->python->layout;
	uint8_t frame[PYTHON_MAX_FRAME_BYTES];
	bool is_shim = true;

	for (size_t i = 0; address && i < MAX_FRAMES; i++) {
		if (address % WORD || !read_at(look, address, frame, layout->frame_bytes) ||
		    !fits_frame(look, frame, i == 0))
			return false;
		is_shim = frame[layout->frame_owner] >= layout->shim_owner;
		address = python_word_at(frame, layout->frame_previous);
	}
	return is_shim || address;
}

// The newest part of the data stack: its size, and where it ends, fit together.
static bool fits_chunk(const struct look *look, const uint8_t *state)
{
	const struct python_layout *layout = &look->python->layout;
	const uint64_t chunk = python_word_at(state, layout->thread_chunk);
	const uint64_t top = python_word_at(state, layout->thread_chunk + WORD);
	uint64_t header[2]; // the one before it, and its size

	if (!chunk)
		return top == 0 && python_word_at(state, layout->thread_frame) == 0;
	return chunk % WORD == 0 && read_at(look, chunk, header, sizeof(header)) &&
	       header[0] % WORD == 0 && header[1] >= MIN_CHUNK_BYTES &&
	       header[1] <= MAX_CHUNK_BYTES && (header[1] & (header[1] - 1)) == 0 && top > chunk &&
	       top <= chunk + header[1];
}

// A process that has forked without telling Python has the tids of its parent.
static bool has_thread(const struct look *look, uint64_t tid)
{
	char name[PROC_NAME_SIZE];

	return look->python->has_own_pids ||
	       (tid <= MAX_TID && proc_read_name(look->python->setup->space->pid, (int)tid, name));
}

static bool fits_state(struct look *look, uint64_t state, uint64_t *ret_next)
{
	const struct python_layout *layout = &look->python->layout;
	uint8_t bytes[PYTHON_MAX_THREAD_BYTES];

	look->n_whole = 0;
	if (state % WORD || !read_at(look, state, bytes, layout->thread_bytes) ||
	    python_word_at(bytes, layout->thread_interp) != look->interp)
		return false;
	*ret_next = python_word_at(bytes, layout->thread_next);
	const uint64_t previous = python_word_at(bytes, layout->thread_next - WORD);
	const uint64_t tid = python_word_at(bytes, layout->thread_native_id);
	if (previous != look->previous || tid > MAX_TID || !fits_chunk(look, bytes) ||
	    !fits_frames(look, python_word_at(bytes, layout->thread_frame)))
		return false;
	look->n_fitting += look->n_whole > 0 && tid > 0 && has_thread(look, tid);
	return true;
}

static bool fits_interp(const struct look *look)
{
	const struct python_layout *layout = &look->python->layout;
	uint64_t id;
	int32_t collecting;

	return look->interp % WORD == 0 &&
	       read_at(look, look->interp + layout->interp_id, &id, sizeof(id)) &&
	       id <= MAX_INTERP_ID &&
	       read_at(look, look->interp + layout->interp_collecting, &collecting,
	               sizeof(collecting)) &&
	       (collecting == 0 || collecting == 1);
}

// Who holds the GIL is a state of an interpreter that has this GIL. Who had it last may be gone.
static bool fits_gil(const struct look *look)
{
	const struct python_layout *layout = &look->python->layout;
	uint64_t gil, holder, interp, other = 0;
	int32_t locked;

	if (!read_at(look, look->interp + layout->interp_gil, &gil, sizeof(gil)) || gil == 0 ||
	    gil % WORD || !read_at(look, gil + layout->gil_locked, &locked, sizeof(locked)) ||
	    !read_at(look, gil + layout->gil_holder, &holder, sizeof(holder)))
		return false;
	return locked == 0 || locked == -1 ||
	       (locked == 1 && holder % WORD == 0 &&
	        read_at(look, holder + layout->thread_interp, &interp, sizeof(interp)) &&
	        read_at(look, interp + layout->interp_gil, &other, sizeof(other)) && other == gil);
}

static bool gil_fits_once(const struct look *look)
{
	for (int i = 0; i < MAX_LOOKS; i++)
		if (fits_gil(look))
			return true;
	return false;
}

// False if the list does not lead on.
static bool check_state(struct look *look, uint64_t *state)
{
	uint64_t next = UINT64_MAX;
	bool fits = false;

	for (int i = 0; !fits && i < MAX_LOOKS; i++)
		fits = fits_state(look, *state, &next);
	look->n_outsiders += !fits;
	look->previous = *state;
	*state = next;
	return next != UINT64_MAX;
}

bool python_guess_fits(const struct python *python, int tid)
{
	const struct python_layout *layout = &python->layout;
	struct look look = {.python = python, .tid = tid};
	uint64_t state;

	if (!read_at(&look, python->runtime + layout->interpreters, &look.interp, WORD))
		return false;
	for (size_t i = 0; look.interp && i < MAX_INTERPRETERS; i++) {
		if (!fits_interp(&look) || !gil_fits_once(&look) ||
		    !read_at(&look, look.interp + layout->interp_threads, &state, WORD))
			return false;
		look.previous = 0;
		for (; state && look.n_checked < MAX_STATES; look.n_checked++)
			if (!check_state(&look, &state))
				return false;
		if (!read_at(&look, look.interp + layout->interp_next, &look.interp, WORD))
			return false;
	}
	// One that calls all the time may be seen in between each time.
	return look.n_fitting > 0 && look.n_outsiders * 4 <= look.n_fitting;
}

// SPDX-License-Identifier: MIT
// python_layout: where CPython keeps what is read of it, by version.
//
// From 3.13 on an interpreter tells that itself (_Py_DebugOffsets, the first member of _PyRuntime),
// but the order of that structure's fields depends on the version. Earlier versions are in a table
// (for x86-64; it fits every build that was looked at).
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	PYTHON_COOKIE_BYTES = 8,    // "xdebugpy", at _PyRuntime from 3.13 on
	PYTHON_OFFSETS_BYTES = 800, // how much is read from there on
	PYTHON_MAX_THREAD_BYTES = 1024,
	PYTHON_MAX_FRAME_BYTES = 256,
	PYTHON_MAX_CODE_BYTES = 256,
};

// Offsets in bytes. 0: there is no such field, or it is the first of its structure.
struct python_layout {
	int minor;     // of the version 3.minor
	bool is_guess; // of a later version, of which the newest known one's order was taken
	bool free_threaded;
	uint32_t interpreters; // in _PyRuntime: the first one's address; 3.6 has a variable for it
	uint32_t interp_next, interp_threads;
	uint32_t thread_next, thread_interp, thread_frame;
	uint32_t thread_cframe, thread_root_cframe; // 3.10-3.12
	uint32_t thread_id, thread_native_id;       // pthread_self, gettid
	uint32_t thread_chunk;                      // the data stack's chunk; its top follows it
	uint32_t thread_bytes;                      // how much of a thread's state is read
	uint32_t cframe_frame, cframe_previous;
	uint32_t frame_previous, frame_code, frame_instr, frame_owner, frame_entry, frame_tlbc;
	uint32_t frame_object;    // 3.11-3.14: the object that a program sees; 0 in it: none
	uint32_t object_line;     // in that: the line, where somebody has set one
	uint32_t frame_generator; // 3.9, 3.10: the generator, or coroutine, that the frame is of
	uint32_t frame_bytes;
	uint32_t frame_locals; // for names of threads (python_names.c)
	uint32_t type_keys;    // likewise, from 3.11 on: the names of its objects' attributes
	uint32_t code_file, code_name, code_qualname, code_lines, code_first_line;
	uint32_t code_consts;           // up to 3.12; the names follow
	uint32_t code_start, code_tlbc; // its instructions
	uint32_t code_traceable;        // the index of the first instruction that counts
	uint32_t code_version, code_bytes;
	uint32_t object_type, bytes_size, bytes_data;
	uint32_t string_state, string_length;
	uint32_t string_ascii, string_compact; // where the text is, in either kind
	uint32_t runtime_gil;                  // 3.7 to 3.11: the GIL's structure in _PyRuntime
	uint32_t runtime_current;              // likewise: the state of the thread that holds it
	uint32_t interp_gil;                   // from 3.12 on: a pointer to the GIL's structure
	uint32_t gil_holder, gil_locked;
	uint32_t interp_id, interp_collecting; // the last: the garbage collector is at work
	uint32_t shim_owner; // a frame whose frame_owner is this or more is not a function's
};

// Returns the layout of a version that does not tell it itself; NULL: not known.
const struct python_layout *python_layout_of(int minor);

// Reads the layout from the first bytes of _PyRuntime. A version that is newer than all known ones
// is taken to be as the newest: ret->is_guess. False if the bytes do not fit together. Sets
// *ret_minor to the version in any case; -1: it is not told.
bool python_layout_read(const uint8_t offsets[PYTHON_OFFSETS_BYTES], struct python_layout *ret,
                        int *ret_minor);

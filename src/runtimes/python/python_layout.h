// SPDX-License-Identifier: MIT
// python_layout: where CPython keeps what is read of it, version by version.
//
// From 3.13 on an interpreter says so itself (_Py_DebugOffsets, the first member of _PyRuntime),
// but which field says what differs; before, it is known by version (x86-64; the same in every
// build that was looked at).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PYTHON_COOKIE_BYTES = 8,    // "xdebugpy", at _PyRuntime from 3.13 on
	PYTHON_OFFSETS_BYTES = 800, // of _Py_DebugOffsets, from there on, are read
	PYTHON_MAX_THREAD_BYTES = 1024,
	PYTHON_MAX_FRAME_BYTES = 256,
	PYTHON_MAX_CODE_BYTES = 256,
};

// Offsets in bytes; 0: there is no such field, but where a structure begins with it.
struct python_layout {
	int minor; // of the version 3.minor
	bool free_threaded;
	uint32_t interpreters; // first one's address in _PyRuntime; 3.6 has a variable for it
	uint32_t interp_next, interp_threads, interp_codes; // the last: code_object_generation
	uint32_t thread_next, thread_interp, thread_frame;
	uint32_t thread_cframe, thread_root_cframe; // 3.10-3.12
	uint32_t thread_id, thread_native_id;       // pthread_self, gettid
	uint32_t thread_chunk;                      // of the data stack, and its top after it
	uint32_t thread_bytes;                      // of it that are read
	uint32_t cframe_frame, cframe_previous;
	uint32_t frame_previous, frame_code, frame_instr, frame_owner, frame_entry, frame_tlbc;
	uint32_t frame_bytes;
	uint32_t frame_locals; // for names of threads (python_names.c)
	uint32_t type_keys;    // likewise, from 3.11 on: the names of its objects' attributes
	uint32_t code_file, code_name, code_qualname, code_lines, code_first_line;
	uint32_t code_consts;           // up to 3.12: and its names after them
	uint32_t code_start, code_tlbc; // its instructions
	uint32_t code_traceable;        // index of the first that counts
	uint32_t code_version, code_bytes;
	uint32_t object_type, bytes_size, bytes_data;
	uint32_t string_state, string_length, string_ascii,
	    string_compact;       // the last two: its text
	uint32_t runtime_gil;     // 3.7 to 3.11: the GIL's structure in _PyRuntime
	uint32_t runtime_current; // likewise: the state of the thread that holds it
	uint32_t interp_gil;      // from 3.12 on: a pointer to it
	uint32_t gil_holder, gil_locked;
	uint32_t interp_id, interp_collecting; // the last: the garbage collector is at work
	uint32_t shim_owner; // from which value of frame_owner on a frame is no function's
};

// The layout of a version that says nothing itself; NULL: it is not known.
const struct python_layout *python_layout_of(int minor);

// That of one whose _PyRuntime begins with these bytes; false: it is not known, or damaged.
// *ret_minor is its version in any case; -1: it does not say.
bool python_layout_read(const uint8_t offsets[PYTHON_OFFSETS_BYTES], struct python_layout *ret,
                        int *ret_minor);

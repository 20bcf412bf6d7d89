// SPDX-License-Identifier: MIT
// record: the format of a recording, as its writer (record_writer.h) and its reader
// (record_reader.h) know it. profiler-record(5) describes it byte by byte.
//
// A recording is a header followed by blocks. Each block has a number, a length and a checksum, so
// that a reader can go on behind a damaged one. A block holds records, each with a type and a
// length, so that a reader can skip types that it does not know. Numbers are varints.
#pragma once

#define RECORD_MAGIC "\x89WPROF\r\n"
enum {
	RECORD_MAGIC_BYTES = 8,
	RECORD_VERSION = 1,
	RECORD_HEADER_BYTES = 16, // magic, version, 0; little-endian as all fixed-width numbers
	RECORD_BLOCK_MARK = 0x4b4c4257, // "WBLK"
	RECORD_BLOCK_HEADER_BYTES = 16, // mark, length of what follows, CRC-32, block number
	RECORD_MAX_BLOCK_BYTES = 1 << 26,
};

enum record_type {
	RECORD_START = 1,     // when the recording began, its process, its machine
	RECORD_MODULE = 2,    // a file of code; again when more is known of it
	RECORD_MAPPING = 3,   // where a module was mapped
	RECORD_LOCATIONS = 4, // addresses in modules
	RECORD_STACKS = 5,    // lists of locations
	RECORD_THREAD = 6,    // a thread was born, or got another name
	RECORD_PROCESS = 7,   // a process's name
	RECORD_SAMPLES = 8,   // what changed in a tick
	RECORD_DEATH = 9,     // a thread has ended
	RECORD_FIGURES = 10,  // ticks, missed ticks and hold time since the previous block
	RECORD_OVERFLOW = 11, // what was dropped
	RECORD_FUNCTIONS = 12,
	RECORD_LINES = 13,           // the functions at locations
	RECORD_END = 14,             // ends a recording that is whole
	RECORD_WAIT = 15,            // what threads wait in; again when more is known of it
	RECORD_FRAME_FUNCTIONS = 16, // functions that a runtime has named (frame_names.h)
	RECORD_LABELS = 17,          // sets of labels
	RECORD_THREAD_FIGURES = 18,  // what the kernel has counted for a thread
	RECORD_CPU = 19,             // cpu_waits.h, about each second
	RECORD_CODE = 20,            // the name of code that a process made (perf_map.h)
	RECORD_PASS = 21,            // time that is not the thread's (profile_pass)
	// Only in a stream of windows (record_writer.h).
	RECORD_WINDOW = 22, // a window ends here; how far threads' spans have got
	RECORD_FORGET = 23, // stacks are numbered anew, and so are threads that have ended
};

// The first byte of an entry of RECORD_SAMPLES, after the thread.
enum {
	RECORD_STATE = 0x07,     // enum thread_state, or RECORD_NO_SAMPLE
	RECORD_NO_SAMPLE = 0x07, // the thread's span has ended, and no other began
	RECORD_LASTED = 0x08,    // the previous span got more ticks than it began with
	RECORD_TICKS = 0x10,     // the sample stands for more than one tick
	RECORD_EARLIER = 0x20,   // the sample is from an earlier time than this record
	RECORD_WAITS = 0x40,     // a wait follows: what the thread waits in
	RECORD_LABELLED = 0x80,  // the sample has labels
};

// Flags of RECORD_START.
enum {
	RECORD_CHILDREN = 1, // descendants are sampled, too
	RECORD_PASSES = 2,   // there are RECORD_PASS
};

enum record_overflow {
	RECORD_OVERFLOW_SIZE = 1,   // --max-size was reached
	RECORD_OVERFLOW_READER = 2, // nobody read the stream: that many stacks, in all, are missing
};

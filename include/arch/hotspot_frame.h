// SPDX-License-Identifier: MIT
// hotspot_frame: where HotSpot's code keeps things in its frames, and in registers
// (frame_<arch>.hpp and stubGenerator_<arch>.cpp in OpenJDK's sources).
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	// In an interpreted frame, from where the frame pointer points to.
	HOTSPOT_METHOD_AT = -24,
	HOTSPOT_BYTECODE_AT = -64, // the address of the current bytecode, when it calls
	HOTSPOT_CALLER_SP_AT = -8, // before the callee's locals were put on the stack
	HOTSPOT_RETURN_AT = 8,

	// In a frame of a known size, from its end.
	HOTSPOT_END_RETURN_AT = -8,

	HOTSPOT_MAX_PUSHED = 7, // words that compiled code pushes beyond its frame, for a while

	HOTSPOT_TOP_BYTES = 64,      // of code around a pc, which is in the middle
	HOTSPOT_ADAPTER_BYTES = 128, // of code before a pc
};

// The register with the address of the current bytecode, while the interpreter runs. While it makes
// a frame, this register has the caller's SP, and the other one the method.
extern const uint8_t hotspot_frame_bytecode, hotspot_frame_method;

// The innermost frame, of compiled code that was interrupted anywhere.
struct hotspot_top {
	uint32_t to_return; // bytes from SP to the return address
	bool has_saved_fp;  // the caller's frame pointer is in the word before that
	bool is_made;       // the frame is whole, but for words that may have been pushed
};

// Tells by the instructions around the pc whether the frame is still being made, or was already
// taken away. `before`: how many bytes of the method come before the pc; `is_early`: the frame is
// not whole before some place behind the pc.
void hotspot_frame_top(const uint8_t code[HOTSPOT_TOP_BYTES], uint64_t before, bool is_early,
                       uint32_t frame_bytes, struct hotspot_top *ret);

// True if the code before the pc has made room of that many bytes below SP, for arguments of a
// method that is interpreted. The caller's SP is in the register of the bytecode then.
bool hotspot_frame_made_room(const uint8_t code[HOTSPOT_ADAPTER_BYTES], uint64_t bytes);

// A register that the stub through which C++ calls Java has saved, from where the frame pointer
// points to.
struct hotspot_saved {
	uint8_t number;
	int8_t at;
};

enum { HOTSPOT_N_SAVED = 5 };
extern const struct hotspot_saved hotspot_frame_saved[HOTSPOT_N_SAVED];

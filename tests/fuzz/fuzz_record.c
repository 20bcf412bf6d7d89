// Recordings. The checksum of each block is put right, so that what is fuzzed lies behind it.
#include <zlib.h>

#include "error.h"
#include "fuzz.h"
#include "memory.h"
#include "record.h"
#include "recording.h"
#include "slice.h"

static uint32_t get_le32(const uint8_t *from)
{
	return from[0] | from[1] << 8 | from[2] << 16 | (uint32_t)from[3] << 24;
}

static void mend_checksums(uint8_t *bytes, size_t size)
{
	for (size_t at = RECORD_HEADER_BYTES; at + RECORD_BLOCK_HEADER_BYTES < size;) {
		uint8_t *header = bytes + at;
		const size_t length = get_le32(header + 4);
		if (get_le32(header) != RECORD_BLOCK_MARK ||
		    length > size - at - RECORD_BLOCK_HEADER_BYTES)
			return;
		const uint32_t sum =
		    crc32(crc32(0, header + 12, 4), header + RECORD_BLOCK_HEADER_BYTES, length);
		for (int i = 0; i < 4; i++)
			header[8 + i] = sum >> 8 * i;
		at += RECORD_BLOCK_HEADER_BYTES + length;
	}
}

static void check_profile(const struct recording *recording)
{
	const struct profile *profile = &recording->profile;

	expect(recording->symbols.n_locations == profile->n_locations);
	for (size_t i = 0; i < profile->n_locations; i++)
		expect(profile->locations[i].module < recording->modules.count);
	for (size_t i = 0; i < profile->n_location_ids; i++)
		expect(profile->location_ids[i] < profile->n_locations);
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		expect(sample->stack < profile->n_stacks && sample->thread < profile->n_threads);
		expect(sample->wait == WAIT_NONE || sample->wait < profile->n_waits);
		expect(sample->wall_ns >= 0 && sample->count > 0);
	}
	for (size_t i = 0; i < recording->symbols.n_lines; i++)
		expect(recording->symbols.lines[i].function < recording->symbols.n_functions);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = memory_alloc(size);
	struct recording recording;
	struct slice slice;

	if (size)
		memcpy(bytes, data, size);
	mend_checksums(bytes, size);
	_cleanup_error_ struct error *error =
	    recording_open_bytes("input", bytes, size, &recording);
	if (error)
		return 0;
	slice_init(&slice, 1000000, 5000000000);
	profile_follow(&recording.profile, &slice.follower);
	recording_replay(&recording);
	check_profile(&recording);
	const struct profile view = slice_view(&slice, &recording.profile);
	expect(view.n_samples <= recording.profile.n_samples);
	slice_deinit(&slice);
	recording_deinit(&recording);
	return 0;
}

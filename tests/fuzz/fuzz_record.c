// SPDX-License-Identifier: MIT
// Recordings.
#include "record_input.h"
#include "slice.h"

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
	struct recording recording;
	struct slice slice;

	if (!record_input_open(data, size, &recording))
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

// SPDX-License-Identifier: MIT
// agent_end: ends samplers of the agent's without harm to those whom they sample.
//
// A sampler that is killed leaves a call of its target short that it sees to its end just then
// (syscall_rest.h). One that is told to end does that first, or leaves a process behind for it
// (parting.h), which another signal would make cut the call: so it is told once.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// The end of one sampler; zero at its beginning.
struct agent_end {
	bool is_told;
	int64_t over_limit_ns; // since when it takes too much memory or time; 0: it does not
};

// Tells it to end: its window ends early, and is written.
void agent_end_tell(struct agent_end *end, pid_t sampler);

// It takes too much memory or time. Tells it to end, and kills the processes that write its
// windows, which trace nobody and have most of the memory: what they have not written is lost.
void agent_end_over_limit(struct agent_end *end, pid_t sampler);

bool agent_end_is_over_limit(const struct agent_end *end);

// Call it from time to time. A sampler over the limit that has not ended after a grace is killed:
// first what samples, so that its supervisor can put right what it leaves (tracee_rescue.h), and
// after another grace what writes, and the supervisor.
void agent_end_press(const struct agent_end *end, pid_t sampler);

#define AGENT_END_GRACE_NS INT64_C(10000000000)

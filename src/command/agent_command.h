// SPDX-License-Identifier: MIT
// agent_command: `profiler agent`.
#pragma once

struct error;
struct options;

// Runs it. `sample` is called in a process of its own for each window (agent.h).
struct error *agent_command(struct options *options, int (*sample)(void *context), void *context);

// Sets the options of a run to those for one of the agent's windows. Call it in a sampler's
// process.
void agent_command_prepare(struct options *options);

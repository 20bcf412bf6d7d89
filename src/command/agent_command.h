// SPDX-License-Identifier: MIT
// agent_command: `profiler agent`.
#pragma once

struct error;
struct options;

// `sample` samples options->pid for a window, in a process of its own (agent.h).
struct error *agent_command(struct options *options, int (*sample)(void *context), void *context);

// In a sampler's process: what the options of a run are for a window of the agent's.
void agent_command_prepare(struct options *options);

// SPDX-License-Identifier: MIT
// stay_behind: for processes that go on after the profiler has ended, as others see it.
#pragma once

// Lets go of all that somebody could wait for, or miss: files, terminal, working directory.
void stay_behind(void);

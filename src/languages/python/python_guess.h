// SPDX-License-Identifier: MIT
// python_guess: whether a version that is not known keeps its structures as the newest known one.
//
// From 3.13 on an interpreter tells its offsets (_Py_DebugOffsets), but each version may order
// them anew. So the newest known order is tried, and believed only if all that is then found fits:
// states that lead back to their interpreter, threads that the process has, frames that lead to
// code objects, strings that end where their length says.
#pragma once

#include <stdbool.h>

struct python;

// True if python->layout, which was guessed, fits what is in the process's memory. False as well
// while no thread has called a function yet. `tid`: a thread of the process.
bool python_guess_fits(const struct python *python, int tid);

// SPDX-License-Identifier: Apache-2.0
// The nursery of a local run: a process that has imported what the program has, and belongs to the program. It forks
// an agent together with the template of its ranks, so that no group waits for an import. docs/protocol.md ("Nursery")
// has what both sides say.
//
// cadre-local starts every agent itself. One whose environment names a nursery hands its command line, environment and
// files over, stands for the agent that is born there, passes signals on, and ends as that agent does.
#pragma once

#include <stdbool.h>

// True: such an agent has run, and has ended with *ret_code. False: there is no nursery, or it forks nothing, so this
// process is to be the agent. control: a descriptor that the agent needs under this number, or -1. Takes the name of
// the nursery out of the environment. No thread may run yet.
bool nursery_run(int argc, char *const *argv, int control, int *ret_code);

// SPDX-License-Identifier: Apache-2.0
// The nursery of a local run: a process that has imported what the program has, and belongs to the program. It forks an
// agent together with the template of its ranks, so no group waits for an import. docs/protocol.md ("Nursery")
// describes the messages.
//
// cadre-local starts every agent itself. If the environment of an agent names a nursery, the agent hands its command
// line, environment and files over to it. It then stands for the agent that the nursery forks: it passes signals on,
// and ends as that agent does.
#pragma once

#include <stdbool.h>

// Returns true after such an agent has run and ended: *ret_code is its exit code. Returns false if there is no nursery,
// or it forks no agent: then this process has to be the agent. control: a descriptor that the agent needs under the
// same number, or -1. Removes the name of the nursery from the environment. Call this before any thread runs.
bool nursery_run(int argc, char *const *argv, int control, int *ret_code);

// SPDX-License-Identifier: Apache-2.0
// Connections to other ranks, which learn from their end that this process has ended. A child of fork() would keep them
// open after that, so it gives them up when it begins.
#pragma once

// From any thread. Nobody has to say when it is closed.
void lifeline_add(int fd);

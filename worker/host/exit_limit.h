// SPDX-License-Identifier: Apache-2.0
// A limit for the end of this process. Methods and exit handlers that wait for a GPU may wait for ever if the driver
// hangs. If the agent has told the process to stop, it kills the process after the grace time. A process that ends by
// itself needs a limit of its own.
#pragma once

enum { EXIT_LIMIT_MS = 10 * 1000 };

// The process ends with this exit code after EXIT_LIMIT_MS at the latest, without its exit handlers. On any thread.
void exit_limit_begin(int code);

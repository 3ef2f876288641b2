// SPDX-License-Identifier: Apache-2.0
// Connections to other ranks. Their end tells the other ranks that this process has ended. A child of fork() would keep
// them open after that, so the child gives them up when it begins.
#pragma once

// On any thread. Nobody needs to say when the connection is closed.
void lifeline_add(int fd);

// SPDX-License-Identifier: Apache-2.0
// Connections to other ranks. Their end tells the other ranks that this process has ended. A child of fork() would keep
// them open after that, so the child drops its copies when it begins.
#pragma once

// On any thread. There is no call for the end of a connection: a closed descriptor is recognized.
void rank_sockets_add(int fd);

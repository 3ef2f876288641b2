// SPDX-License-Identifier: Apache-2.0
// What all peers together may make the operator hold, and how it is divided: pure. The parts are charged to each other
// (common/wire/quota.h): a stranger's or a session's bytes also count for all, so the sum of what is promised never is
// more than `all`. docs/calls.md, "What the operator may hold", has the same table.
#pragma once

#include <stddef.h>

struct budget {
    size_t all;       // bodies, calls and answers of all peers
    size_t session;   // of one client's connection
    size_t queue;     // that wait to be sent to one peer
    size_t whole;     // of a body that has to be here whole
    size_t strangers; // of all peers that have not said who they are
};

// `limit`: memory that the process may use; 0 = no limit is known. Half of it is for peers. The rest is for the mirrors
// of the cluster, for blocks that are kept for the next body, and for what an allocator and TLS need beside the bytes
// that are counted.
struct budget budget_of(size_t limit);

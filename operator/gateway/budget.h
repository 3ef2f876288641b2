// SPDX-License-Identifier: Apache-2.0
// How much all peers together may make the operator hold, and how it is divided. Pure. Parts are charged to the part
// above them (common/wire/quota.h): bytes of a session or of an unknown peer also count for all. The sum therefore
// never exceeds `all`. docs/calls.md, "What the operator may hold", has the same table.
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

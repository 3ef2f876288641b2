// SPDX-License-Identifier: Apache-2.0
// Decides how much memory all peers together may use in the operator, and divides it. Pure. A part is also charged to
// the part above it (common/wire/quota.h): bytes of a session or of an unknown peer count for all. The sum therefore
// never exceeds `all`. docs/calls.md, "Memory of the operator", has the same table.
#pragma once

#include <stddef.h>

struct budget {
    size_t all;        // bodies, calls and answers of all peers
    size_t session;    // of one client's connection
    size_t queue;      // waiting to be sent to one peer
    size_t whole;      // of a body that must be here whole
    size_t unadmitted; // of all peers that are not admitted yet
};

// `limit` is the memory that the process may use; 0 = no limit is known. Half of it is for peers. The rest is for the
// mirrors of the cluster, for blocks that are kept for the next body, and for the overhead of the allocator and of TLS.
struct budget budget_of(size_t limit);

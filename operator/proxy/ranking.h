// SPDX-License-Identifier: Apache-2.0
// Finds the least busy rank of a group without looking at all ranks. Each lane with tasks has a tree over the connected
// ranks. A node of the tree has the fewest pending calls of all ranks below it that have a free slot. Changes are
// noted, and the next question brings the trees up to date. This takes time that grows with the logarithm of the ranks
// for each changed count, and with the ranks if one has connected or gone.
#pragma once

#include "operator/proxy/member.h"

struct ranking {
    const struct list *members; // the group's
    // private
    struct member **by_rank;                // the connected members
    size_t n, size;                         // how many members; how many leaves a tree has: a power of 2
    size_t room;                            // how many by_rank has room for
    bool stale;                             // a member has come or gone
    uint32_t *fewest[MEMBER_LANES_MAX + 1]; // trees, with the root at 1; NULL = the lane has had no task
    struct list changed;                    // members whose counts have changed
};

void ranking_init(struct ranking *r, const struct list *members);
void ranking_done(struct ranking *r);
void ranking_stale(struct ranking *r);                     // a member has come or gone
void ranking_changed(struct ranking *r, struct member *m); // it has more or fewer calls. It may be gone from the group
// The member with the fewest pending calls of all members with a free slot in the lane. If there are several, it is the
// first of them from rank `from` on, or else from rank 0 on. NULL = no slot is free.
const struct member *ranking_least(struct ranking *r, uint8_t lane, uint32_t from);
